"""What the delivery engine tells the layers above."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.dispatch import Signal


@dataclass(frozen=True)
class Settlement:
    """A delivery that ended: ``state`` is delivered or failed, ``at`` by the database's clock."""

    delivery_id: UUID
    command_id: UUID | None
    state: str
    failure_reason: str
    at: datetime


# Sent with ``settlements: list[Settlement]``, in batches, inside the transaction that records them: a
# receiver's changes commit or roll back together with the deliveries'.
deliveries_settled = Signal()
