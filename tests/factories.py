"""Things as they come to be in life: made by the services, moved by recorded attempts, never by hand.

No HTTP here: an attempt is claimed as the engine claims it and recorded with an outcome made up by
the test. Two freedoms only: a delivery that waits is made due at once, and a deadline that has passed
comes from a dispatch with a timeout of zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.test import override_settings

from commands import datasets, issuing, lifecycle, settling
from commands.models import Command, CommandEvent, Dataset, Experiment
from commands.rules.reports import Outcome as Report
from commands.rules.states import ACK_TIMEOUT_DEFAULT_S, State
from organizations.actors import Actor
from organizations.clock import database_now
from organizations.models import Organization
from organizations.provisioning import Provisioned, provision
from organizations.rules import roles
from webhooks import endpoints, publishing
from webhooks.engine import claims, recorder
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome
from webhooks.models import Attempt, Delivery, Endpoint, Event
from webhooks.rules.verdicts import Verdict, verdict_on_error, verdict_on_status

WORKER = "a worker of the tests"
# A public address, so that nothing has to be resolved; these tests never send.
RECEIVER_URL = "https://93.184.216.34/hook"

A_YEAR = timedelta(days=365)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Scene:
    """One organization at work: its people, an armed dataset, an endpoint for its commands."""

    provisioned: Provisioned
    experiment: Experiment
    dataset: Dataset
    endpoint: Endpoint

    @property
    def organization(self) -> Organization:
        return self.provisioned.organization

    @property
    def owner(self) -> Actor:
        return self.provisioned.actor(roles.OWNER)

    @property
    def operator(self) -> Actor:
        return self.provisioned.actor(roles.OPERATOR)

    @property
    def viewer(self) -> Actor:
        return self.provisioned.actor(roles.VIEWER)

    def issued(self, token: str | None = None, name: str = "hold", **parameters: Any) -> Command:
        """A command on record, not dispatched."""
        token = token or f"token-{next(_numbers)}"
        return issuing.issue(self.operator, self.dataset, token, name, parameters).command

    def dispatched(self, *, ack_timeout_s: int = ACK_TIMEOUT_DEFAULT_S, **issued: Any) -> Command:
        """A queued command whose first attempt is due."""
        command = self.issued(**issued)
        return lifecycle.dispatch(self.operator, command.pk, ack_timeout_s)

    def on_the_wire(self, **dispatched: Any) -> tuple[Command, Claimed]:
        """A queued command with its first attempt under way."""
        command = self.dispatched(**dispatched)
        return command, claim(command)

    def delivered(self, **dispatched: Any) -> Command:
        """A command that the receiver has taken, waiting for a report."""
        command, attempt = self.on_the_wire(**dispatched)
        record(answer(attempt, 200))
        return fresh(command)

    def overdue(self) -> Command:
        """Delivered in time, and the deadline has passed since: the sweep is yet to come."""
        command, attempt = self.on_the_wire(ack_timeout_s=0)
        assert command.ack_deadline
        record(answer(attempt, 200, finished_at=command.ack_deadline - timedelta(microseconds=1)))
        return fresh(command)

    def failed(self, **dispatched: Any) -> Command:
        """A command that the receiver refused."""
        command, attempt = self.on_the_wire(**dispatched)
        record(answer(attempt, 400))
        return fresh(command)

    def in_state(self, state: str) -> Command:
        """A command that came into this state as commands do."""
        match State(state):
            case State.LOGGED:
                return self.issued()
            case State.QUEUED:
                return self.dispatched()
            case State.DELIVERED:
                return self.delivered()
            case State.FAILED:
                return self.failed()
            case State.ACKED:
                return self._reported(Report.SUCCESS)
            case State.NACKED:
                return self._reported(Report.REJECTION)
            case State.TIMED_OUT:
                command = self.overdue()
                settling.time_out_overdue()
                return fresh(command)
            case State.RETRACTED:
                return lifecycle.retract(self.operator, self.issued().pk).command

    def _reported(self, report: Report) -> Command:
        return lifecycle.acknowledge(self.operator, self.delivered().pk, report).command

    def send(self, endpoint: Endpoint | None = None, body: bytes = b"{}") -> Delivery:
        """A delivery of some event, due at once."""
        with transaction.atomic():
            return publishing.send_to(endpoint or self.endpoint, "test.event", body)

    def published(self, event_type: str = "order.created", **data: Any) -> Event:
        """An event, told to whoever subscribes to it."""
        return publishing.publish(self.organization.pk, event_type, data)

    def another_endpoint(self, policy: str = "command", **wanted: Any) -> Endpoint:
        """One more endpoint of the organization."""
        return new_endpoint(self.owner, policy, **wanted)


def new_scene(name: str = "Test organization") -> Scene:
    """A new organization with people, an armed dataset and an endpoint that takes its commands."""
    provisioned = provision(name)
    owner = provisioned.actor(roles.OWNER)
    experiment = datasets.create_experiment(owner, "Experiment")
    dataset = datasets.create_dataset(owner, experiment, "Dataset")
    endpoint = new_endpoint(owner)
    return Scene(provisioned, experiment, datasets.arm(owner, dataset.pk), endpoint)


def new_endpoint(owner: Actor, policy: str = "command", **wanted: Any) -> Endpoint:
    """An endpoint as its owner registers it."""
    asked = {"name": f"Receiver {next(_numbers)}", "url": RECEIVER_URL, **wanted}
    return endpoints.create(owner, endpoints.NewEndpoint(policy=policy, **asked)).endpoint


# --- attempts -----------------------------------------------------------------------------------


def make_due(*delivery_ids: UUID) -> None:
    """Bring the next attempt forward to now."""
    waiting = Delivery.objects.filter(next_attempt_at__isnull=False)
    waiting.filter(pk__in=delivery_ids).update(next_attempt_at=Now())


def claim(of: Command | Delivery) -> Claimed:
    """Claim the next attempt of this delivery alone, and at once, however many are in flight."""
    delivery = delivery_of(of)
    others = Delivery.objects.exclude(pk=delivery.pk).filter(next_attempt_at__isnull=False)
    with transaction.atomic():
        others.update(next_attempt_at=F("next_attempt_at") + A_YEAR)
        make_due(delivery.pk)
        with override_settings(ENDPOINT_UNPROVEN_IN_FLIGHT=1000, ENDPOINT_MAX_IN_FLIGHT=1000):
            [claimed] = claims.claim(1, WORKER)
        others.update(next_attempt_at=F("next_attempt_at") - A_YEAR)
    return claimed


def answer(
    attempt: Claimed, status: int, *, finished_at: datetime | None = None, **facts: Any
) -> Outcome:
    """The outcome of an attempt that the receiver answered, judged by the delivery's policy."""
    verdict = verdict_on_status(attempt.policy, status)
    return outcome(attempt, verdict, finished_at, status_code=status, phase="body", **facts)


def no_answer(attempt: Claimed, error_kind: str, *, finished_at: datetime | None = None) -> Outcome:
    """The outcome of an attempt without a status line."""
    verdict = verdict_on_error(attempt.policy, error_kind)
    phase = "name" if error_kind in ("dns", "blocked_address") else "headers"
    said = {"phase": phase, "error_kind": error_kind, "error": f"{error_kind}."}
    return outcome(attempt, verdict, finished_at, **said)


def lost(attempt: Claimed) -> Outcome:
    """The outcome of an attempt whose worker died."""
    return outcome(attempt, Verdict.LOST, None, error="The worker died.")


def ending(attempt: Claimed, end: int | str) -> Outcome:
    """An outcome by its status, its kind of error, or the word "lost"."""
    if isinstance(end, int):
        return answer(attempt, end)
    return lost(attempt) if end == "lost" else no_answer(attempt, end)


def outcome(
    attempt: Claimed, verdict: Verdict, finished_at: datetime | None, **facts: Any
) -> Outcome:
    return Outcome(
        attempt_id=attempt.attempt_id,
        delivery_id=attempt.delivery_id,
        endpoint_id=attempt.endpoint_id,
        policy=attempt.policy,
        number=attempt.number,
        verdict=verdict,
        finished_at=finished_at or database_now(),
        started_at=None if verdict == Verdict.LOST else attempt.claimed_at,
        **facts,
    )


def record(*outcomes: Outcome) -> int:
    """Record outcomes as the engine does; how many attempts that closed."""
    return recorder.record(outcomes) if outcomes else 0


def fail_with(of: Command | Delivery, statuses: Sequence[int]) -> None:
    """Make one attempt after the other with these answers, each as soon as the one before ended."""
    for status in statuses:
        record(answer(claim(of), status))


# --- reading ------------------------------------------------------------------------------------


def fresh(command: Command) -> Command:
    """The command as the database has it now."""
    return Command.objects.select_related("dataset", "delivery").get(pk=command.pk)


def story(command: Command) -> list[str]:
    """The kinds of the timeline's lines, in their order."""
    return [line.kind for line in lines(command)]


def lines(command: Command) -> list[CommandEvent]:
    """The timeline in its order."""
    return list(CommandEvent.objects.filter(command=command).order_by("pk"))


def attempts(of: Command | Delivery) -> list[Attempt]:
    """The attempts, oldest first."""
    return list(Attempt.objects.filter(delivery=delivery_of(of)).order_by("number"))


def delivery_of(of: Command | Delivery) -> Delivery:
    """The delivery as the database has it now."""
    delivery_id = of.pk if isinstance(of, Delivery) else of.delivery_id
    assert delivery_id, "the command was never dispatched"
    return Delivery.objects.get(pk=delivery_id)
