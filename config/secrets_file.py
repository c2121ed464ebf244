"""Keys that a fresh installation makes for itself, kept in the data folder and readable by its owner."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def read_or_create(path: Path) -> str:
    """The key stored at ``path``; on first use 32 random bytes, base64url, mode 0600.

    Two processes that start together agree: the file is made under another name and linked into
    place, and whoever comes second reads what the first one wrote.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _create(path)
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot keep a key in {path} ({error.strerror}): set CONSOLE_DATA_DIR to a folder "
            "you may write to."
        ) from None


def _create(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.urlsafe_b64encode(secrets.token_bytes(32)))
            # What is encrypted with it may be on disk within seconds: the key must be there first.
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
        _sync_folder(path.parent)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
