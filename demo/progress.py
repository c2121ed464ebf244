"""What a person sees while the demo runs: one line that updates itself, or plain lines in a log."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

CLEAR_LINE = "\r\x1b[K"


class Progress:
    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._began = time.monotonic()

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(f"{text}\n")

    def change(self, text: str) -> None:
        """A step that only a log needs a line for: a terminal shows it in the updating one."""
        if not self._live:
            self._write(f"{self._elapsed()}  {text}\n")

    def show(self, text: str) -> None:
        """Replace the updating line; cut to the width, for a wrapped line cannot be replaced."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write(CLEAR_LINE + f"{self._elapsed()}  {text}"[:width])

    def clear(self) -> None:
        if self._live:
            self._write(CLEAR_LINE)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:5.1f} s"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
