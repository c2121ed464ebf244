"""Refusals of the lifecycle. Each has a code that the API returns and a sentence that says what to do."""

from __future__ import annotations

from typing import ClassVar

from commands.models import Command


class Refused(Exception):
    """The command stays as it is."""

    def __init__(self, code: str, command: Command) -> None:
        self.code = code
        self.command = command
        super().__init__(self.sentences.get(code, code))

    sentences: ClassVar[dict[str, str]] = {}


class IssueRefused(Refused):
    """An issue that contradicts what was issued before."""

    sentences: ClassVar = {
        "client_token_conflict": (
            "This clientToken was used for a command with other content. Use a new token for a new"
            " command."
        ),
    }


class DispatchRefused(Refused):
    """A dispatch that may not happen now; the reason is on the command's timeline."""

    sentences: ClassVar = {
        "dataset_unarmed": "The dataset is not armed. Arm it, then dispatch again.",
        "no_endpoint": (
            "No endpoint receives this dataset's commands. Register one, or choose one for the dataset."
        ),
        "endpoint_disabled": (
            "The endpoint is disabled. An owner can test it and enable it again; then dispatch again."
        ),
        "already_dispatched": "The command was dispatched before. To send it again, reissue it.",
        "retracted": "The command was retracted. To send it after all, reissue it.",
    }


class ReportRefused(Refused):
    """A report that cannot move the command; it is kept on the timeline."""

    sentences: ClassVar = {
        "ack_conflict": "The opposite was reported before, and that report stands.",
        "ack_too_late": "The deadline has passed: the command is timed out. The report is kept.",
        "retracted": "The command was retracted. The report is kept.",
        "failed": "The command failed to be delivered. The report is kept.",
        "not_delivered": "The command has not been sent yet. The report is kept.",
    }


class ReissueRefused(Refused):
    """Only a command whose end is known to be bad is sent again, as a new command."""

    sentences: ClassVar = {
        "not_reissuable": (
            "Only a failed, timed out, rejected or retracted command can be reissued: this one may"
            " still be carried out."
        ),
    }
