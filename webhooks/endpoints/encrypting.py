"""What is encrypted, written anew with the first key, so that older keys can be thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from webhooks import secrets
from webhooks.models import Endpoint, EndpointSecret


@dataclass
class Reencryption:
    """How many values were written anew, how many the first key had written, and what none can read."""

    rewritten: int = 0
    current: int = 0
    unreadable: int = 0


def encrypt_anew() -> Reencryption:
    """Encrypt signing secrets and headers with the first key. May be repeated, and run while the console
    works: a value that somebody changes meanwhile is left as it then is.
    """
    done = Reencryption()
    for rows, column in (
        (EndpointSecret.objects.order_by("pk"), "ciphertext"),
        (Endpoint.objects.exclude(headers_ciphertext="").order_by("pk"), "headers_ciphertext"),
    ):
        for pk, before in rows.values_list("pk", column).iterator():
            _one(done, rows.filter(pk=pk, **{column: before}), column, before)
    return done


def _one(done: Reencryption, row: QuerySet[Any], column: str, before: str) -> None:
    try:
        after = secrets.encrypt_anew(before)
    except secrets.SecretUnreadable:
        done.unreadable += 1
        return
    if after == before:
        done.current += 1
    else:
        done.rewritten += row.update(**{column: after})
