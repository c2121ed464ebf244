"""Experiments and datasets: made, armed, disarmed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from commands.models import Dataset, Experiment
from organizations import audit, prepared
from organizations.actors import Actor
from webhooks.models import Endpoint

# A turn at a dataset's switch. Dispatches share it, arming and disarming take it alone. An advisory lock,
# because newcomers who share a row pass a writer that waits for it: a flood of dispatches would hold off
# the disarm that is to stop it.
SHARE = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s::uuid::text, 0))"
TAKE = "SELECT pg_advisory_xact_lock(hashtextextended(%s::uuid::text, 0))"


def create_experiment(actor: Actor, name: str) -> Experiment:
    """A new, empty experiment."""
    actor.require("datasets:write")
    with transaction.atomic():
        experiment = Experiment.objects.create(organization=actor.organization, name=name)
        audit.record(actor, "experiment.create", experiment, after={"name": name})
    return experiment


def create_dataset(
    actor: Actor, experiment: Experiment, name: str, endpoint: Endpoint | None = None
) -> Dataset:
    """A new dataset, not armed. ``endpoint`` takes its commands, else the organization's default.

    Raises DoesNotExist for an experiment or endpoint of another organization.
    """
    actor.require("datasets:write")
    for chosen in (experiment, endpoint):
        if chosen and chosen.organization_id != actor.organization.pk:
            raise type(chosen).DoesNotExist
    with transaction.atomic():
        dataset = Dataset.objects.create(
            organization=actor.organization,
            experiment=experiment,
            name=name,
            endpoint=endpoint,
        )
        audit.record(actor, "dataset.create", dataset, after={"name": name})
    return dataset


def share(dataset_id: UUID) -> Dataset:
    """The dataset, which nobody can disarm until the transaction ends."""
    prepared.execute(SHARE, [dataset_id])
    return Dataset.objects.get(pk=dataset_id)


def arm(actor: Actor, dataset_id: UUID) -> Dataset:
    """Allow dispatches from the dataset. Arming an armed one changes nothing."""
    return _switch(
        actor,
        dataset_id,
        "dataset.arm",
        armed=True,
        armed_by=actor.user,
        armed_at=Now(),
    )


def disarm(actor: Actor, dataset_id: UUID) -> Dataset:
    """Refuse dispatches from now on. When this returns, none is under way any more; what was queued
    before goes on, and is stopped by retracting it.
    """
    return _switch(actor, dataset_id, "dataset.disarm", armed=False, armed_by=None, armed_at=None)


def _switch(actor: Actor, dataset_id: UUID, act: str, **state: Any) -> Dataset:
    actor.require("datasets:arm")
    with transaction.atomic():
        dataset = Dataset.objects.get(pk=dataset_id, organization=actor.organization)
        prepared.execute(TAKE, [dataset_id])
        dataset.refresh_from_db()
        if dataset.armed != state["armed"]:
            Dataset.objects.filter(pk=dataset.pk).update(**state)
            before = {"armed": dataset.armed}
            dataset.refresh_from_db()
            audit.record(actor, act, dataset, before=before, after={"armed": dataset.armed})
    return dataset
