"""What an owner asked for and an endpoint cannot do."""

from __future__ import annotations

from typing import ClassVar


class Refused(Exception):
    """The endpoint stays as it is. ``code`` is for programs, the message for people."""

    sentences: ClassVar[dict[str, str]] = {
        "endpoint_archived": (
            "The endpoint is archived: it stays on record and is not used again. Register a new one."
        ),
        "too_many_secrets": (
            "As many old secrets as a delivery has room for still sign beside the current one. Wait"
            " until one has expired, or rotate at once to drop them."
        ),
    }

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(self.sentences[code])


class FieldRefused(ValueError):
    """A value that an endpoint may not have; the message says why and never repeats a secret."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(reason)
