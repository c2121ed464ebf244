"""What a person sees while the benchmarks run: one line that updates itself, or plain lines in a log."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Speaks on standard error, so that standard output has the table alone."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._began = time.monotonic()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._write(f"{CLEAR_LINE if self._live else ''}{self._elapsed()}  {text}\n")

    def show(self, text: str) -> None:
        """A passing word: it replaces the last on a terminal, and a log does without."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write(CLEAR_LINE + f"{self._elapsed()}  {text}"[:width])

    def clear(self) -> None:
        if self._live:
            self._write(CLEAR_LINE)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:5.0f} s"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
