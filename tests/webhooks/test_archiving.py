"""An endpoint archived: as if disabled, for good, and its history stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commands import datasets, lifecycle
from commands.errors import DispatchRefused
from organizations.actors import NotPermitted
from organizations.models import AuditEntry, Notice
from tests import factories
from tests.factories import Scene, delivery_of, fresh, new_scene
from tests.plain_sql import Connection
from webhooks import endpoints
from webhooks.engine import claims, tasks
from webhooks.models import Attempt, Delivery, Endpoint, Event


def archive(scene: Scene) -> Endpoint:
    return endpoints.archive(scene.owner, scene.endpoint.pk)


def test_it_is_off_and_no_default_any_more(scene: Scene) -> None:
    endpoint = archive(scene)

    assert (endpoint.enabled, endpoint.is_default) == (False, False)
    assert endpoint.archived_at
    assert endpoint.disabled_reason == "Archived by an owner."


def test_what_waits_ends_and_what_flies_finishes(scene: Scene) -> None:
    waiting, (flying, attempt) = scene.dispatched(), scene.on_the_wire()
    ping = endpoints.ping(scene.owner, scene.endpoint.pk)

    archive(scene)

    assert delivery_of(waiting).failure_reason == "endpoint_disabled"
    assert fresh(waiting).state == "failed"
    assert delivery_of(ping).failure_reason == "endpoint_disabled"
    factories.record(factories.answer(attempt, 200))
    assert fresh(flying).state == "delivered"


def test_its_history_stays(scene: Scene) -> None:
    command = scene.delivered()

    archive(scene)

    assert Attempt.objects.filter(endpoint=scene.endpoint).count() == 1
    assert fresh(command).state == "delivered"


def test_the_default_has_no_successor_but_by_an_owner_s_choice(scene: Scene) -> None:
    other = scene.another_endpoint()

    archive(scene)

    assert endpoints.for_commands(scene.organization.pk, None) is None
    endpoints.edit(scene.owner, other.pk, {"is_default": True})
    assert endpoints.for_commands(scene.organization.pk, None) == other


def test_a_dataset_that_names_it_has_no_endpoint(scene: Scene) -> None:
    named = scene.another_endpoint()
    dataset = datasets.create_dataset(scene.owner, scene.experiment, "Named", named)
    datasets.arm(scene.owner, dataset.pk)
    endpoints.archive(scene.owner, named.pk)
    scene = Scene(scene.provisioned, scene.experiment, dataset, named)
    command = scene.issued()

    with pytest.raises(DispatchRefused) as refusal:
        lifecycle.dispatch(scene.operator, command.pk)

    assert refusal.value.code == "no_endpoint"


@pytest.mark.parametrize(
    "act",
    [
        lambda actor, pk: endpoints.enable(actor, pk),
        lambda actor, pk: endpoints.edit(actor, pk, {"name": "New"}),
        lambda actor, pk: endpoints.edit(actor, pk, {}),
        lambda actor, pk: endpoints.rotate_secret(actor, pk),
        lambda actor, pk: endpoints.ping(actor, pk),
    ],
    ids=["enable", "edit", "edit of nothing", "rotate", "ping"],
)
def test_nothing_can_be_done_with_it(scene: Scene, act: Callable[..., Any]) -> None:
    archive(scene)

    with pytest.raises(endpoints.Refused) as refusal:
        act(scene.owner, scene.endpoint.pk)

    assert refusal.value.code == "endpoint_archived"


def test_archiving_again_changes_nothing(scene: Scene) -> None:
    first = archive(scene)
    entries = AuditEntry.objects.count()

    assert archive(scene).archived_at == first.archived_at
    assert not endpoints.disable(scene.owner, scene.endpoint.pk, "again").enabled
    assert AuditEntry.objects.count() == entries


def test_one_that_was_disabled_is_archived_without_being_disabled_again(scene: Scene) -> None:
    disabled = endpoints.disable(scene.owner, scene.endpoint.pk, "broken")
    told = (Notice.objects.count(), Event.objects.filter(type="endpoint.disabled").count())

    endpoint = archive(scene)

    assert endpoint.disabled_at == disabled.disabled_at
    assert endpoint.disabled_reason == "Archived by an owner."
    assert (Notice.objects.count(), Event.objects.filter(type="endpoint.disabled").count()) == told


def test_it_is_audited(scene: Scene) -> None:
    archive(scene)

    entry = AuditEntry.objects.latest("pk")
    assert entry.act == "endpoint.archive"
    assert (entry.before["archived"], entry.after["archived"]) == (False, True)


@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_only_an_owner_archives(scene: Scene, role: str) -> None:
    with pytest.raises(NotPermitted):
        endpoints.archive(scene.provisioned.actor(role), scene.endpoint.pk)


def test_nobody_archives_another_organization_s(scene: Scene) -> None:
    with pytest.raises(Endpoint.DoesNotExist):
        endpoints.archive(new_scene("Another").owner, scene.endpoint.pk)


def test_no_attempt_starts_whatever_waits_there(scene: Scene) -> None:
    """Even what nobody should have put there: it ends with the next sweep."""
    archive(scene)
    endpoint = Endpoint.objects.get(pk=scene.endpoint.pk)
    stray = [scene.send(endpoint), factories.delivery_of(scene.send(endpoint))]

    assert claims.claim(10, factories.WORKER) == []
    tasks.sweep_leases()
    assert {delivery_of(one).state for one in stray} == {Delivery.State.FAILED}


@pytest.mark.parametrize(
    "change", ["enabled = true", "is_default = true", "archived_at = now()", "archived_at = NULL"]
)
def test_the_database_keeps_it_archived(scene: Scene, sql: Connection, change: str) -> None:
    archive(scene)

    with pytest.raises(Exception, match=r"archived|enabled|default"):
        sql.execute(f"UPDATE webhooks_endpoint SET {change} WHERE id = %s", [scene.endpoint.pk])
