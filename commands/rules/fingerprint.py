"""Whether two requests to issue a command ask for the same thing."""

from __future__ import annotations

import hashlib


def fingerprint(dataset_id: str, name: str, parameters: str) -> str:
    """SHA-256 over what an issue asks for; ``parameters`` is canonical JSON text with its
    keys sorted: their order means nothing.

    Each part is preceded by its length, so that no two different requests read the same.
    """
    digest = hashlib.sha256()
    for part in (dataset_id, name, parameters):
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()
