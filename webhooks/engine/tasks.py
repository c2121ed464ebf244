"""What the broker hands to the workers. Each task is short: a worker runs one at a time."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError, transaction

from webhooks import endpoints
from webhooks.engine import claims, recorder
from webhooks.engine.claims import Expired
from webhooks.engine.pump import pump
from webhooks.engine.recorder import Outcome
from webhooks.models import Delivery
from webhooks.rules.verdicts import Verdict
from webhooks.signals import deliveries_settled

logger = logging.getLogger(__name__)

# Expired leases closed by one sweep at most; what is left waits for the next, a second later.
SWEEP_LIMIT = 200
# Steps in which one sweep ends what waits at disabled endpoints; what is left waits for the next.
STRANDED_STEPS = 10


def deliver() -> None:
    """A delivery is due: have this worker's pump claim what it has room for."""
    pump().wake()


def sweep_leases() -> int:
    """Close attempts whose worker has died as lost, so that the next one follows."""
    _settle_stranded()
    claims.release_orphans()
    gone = claims.expired(SWEEP_LIMIT)
    if not gone:
        return 0
    return _record([_lost(one) for one in gone])


def _lost(expired: Expired) -> Outcome:
    return Outcome(
        attempt_id=expired.attempt_id,
        delivery_id=expired.delivery_id,
        endpoint_id=expired.endpoint_id,
        policy=expired.policy,
        number=expired.number,
        verdict=Verdict.LOST,
        finished_at=expired.noticed_at,
        error="The worker died during the attempt; whether it arrived is unknown.",
    )


def _record(outcomes: list[Outcome]) -> int:
    """Record them together, or each alone: one that is refused for ever must not hold up the others."""
    try:
        return recorder.record(outcomes)
    except (OperationalError, InterfaceError):
        raise  # the database is away: the next sweep is a second later
    except Exception:
        if len(outcomes) == 1:
            logger.exception("attempt %d cannot be closed", outcomes[0].attempt_id)
            return 0
    return sum(_record([outcome]) for outcome in outcomes)


def _settle_stranded() -> None:
    """One transaction a step, so that nobody waits long for its locks."""
    for _ in range(STRANDED_STEPS):
        with transaction.atomic():
            settled = endpoints.fail_stranded()
            deliveries_settled.send(sender=Delivery, settlements=settled)
        if not settled:
            return
