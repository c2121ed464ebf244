"""One attempt: sign at the last moment, send, judge. No database, no transaction."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.conf import settings

from webhooks import secrets
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome
from webhooks.engine.sender import Answer, Outgoing, Sender
from webhooks.rules import signing
from webhooks.rules.policies import Policy
from webhooks.rules.verdicts import Verdict, verdict_on_error, verdict_on_status

logger = logging.getLogger(__name__)

# A worker that was suspended between claiming and sending does not send when less than this many
# seconds of the lease would be left at the deadline: by then the next attempt may be under way.
LEASE_MARGIN_S = 5.0


def make(sender: Sender, claimed: Claimed) -> Outcome:
    """Make the attempt and say what came of it. A fault of ours is a lost attempt, never an exception:
    it is no evidence against the endpoint, and the schedule goes on.
    """
    if _too_old(claimed):
        return _lost(claimed, "The worker was suspended too long to send this safely.")
    try:
        return _judged(claimed, sender.send(_outgoing(claimed)))
    except Exception as fault:
        logger.exception("attempt %d failed inside the console", claimed.attempt_id)
        return _lost(
            claimed,
            f"The console could not make this attempt ({type(fault).__name__}).",
        )


def _too_old(claimed: Claimed) -> bool:
    age = time.monotonic() - claimed.claimed_monotonic
    return age > settings.LEASE_S - settings.ATTEMPT_DEADLINE_S - LEASE_MARGIN_S


def _outgoing(claimed: Claimed) -> Outgoing:
    signature = signing.signature_headers(
        message_id=f"msg_{claimed.event_id.hex}",
        timestamp=int(time.time()),
        body=claimed.body,
        secrets=[secrets.decrypt(ciphertext) for ciphertext in claimed.secret_ciphertexts],
        event_type=claimed.event_type,
        attempt=claimed.number,
    )
    own = secrets.decrypt_headers(claimed.headers_ciphertext)
    hops = {} if claimed.hops is None else {"X-Webhook-Hops": str(claimed.hops)}
    return Outgoing(url=claimed.url, headers={**own, **signature, **hops}, body=claimed.body)


def _judged(claimed: Claimed, answer: Answer) -> Outcome:
    started_at = claimed.claimed_at + timedelta(seconds=answer.started - claimed.claimed_monotonic)
    duration = max(answer.finished - answer.started, 0.0)
    return Outcome(
        attempt_id=claimed.attempt_id,
        delivery_id=claimed.delivery_id,
        endpoint_id=claimed.endpoint_id,
        policy=claimed.policy,
        number=claimed.number,
        verdict=_verdict(claimed.policy, answer),
        started_at=started_at,
        finished_at=started_at + timedelta(seconds=duration),
        duration_ms=round(duration * 1000),
        status_code=answer.status_code,
        phase=answer.phase,
        error_kind=answer.error_kind or "",
        error=_storable(answer.error, 500),
        response_excerpt=answer.excerpt,
        excerpt_truncated=answer.excerpt_truncated or answer.body_incomplete,
        retry_after=_storable(answer.retry_after or "", 100),
        location=_storable(answer.location or "", 500),
    )


def _verdict(policy: Policy, answer: Answer) -> Verdict:
    if answer.status_code is not None:
        return verdict_on_status(policy, answer.status_code)
    return verdict_on_error(policy, answer.error_kind or "")


def _lost(claimed: Claimed, error: str) -> Outcome:
    elapsed = time.monotonic() - claimed.claimed_monotonic
    return Outcome(
        attempt_id=claimed.attempt_id,
        delivery_id=claimed.delivery_id,
        endpoint_id=claimed.endpoint_id,
        policy=claimed.policy,
        number=claimed.number,
        verdict=Verdict.LOST,
        finished_at=claimed.claimed_at + timedelta(seconds=elapsed),
        error=error,
    )


def _storable(text: str, limit: int) -> str:
    """Text that PostgreSQL takes: no NUL, no half surrogates, not too long."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode()[:limit]
