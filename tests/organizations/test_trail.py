"""The audit trail read back: newest first, by person, key, act, target and time, never without a bound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from commands import datasets
from organizations import keys, paging, trail
from organizations.models import AuditEntry, User
from organizations.paging import Page
from organizations.provisioning import provision
from organizations.rules import roles
from organizations.trail import Filters
from tests.factories import Scene, new_scene

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def write(
    scene: Scene, act: str = "command.issue", at: datetime | None = None, user: User | None = None
) -> AuditEntry:
    facts = {"at": at} if at else {}
    return AuditEntry.objects.create(
        organization=scene.organization,
        user=user or scene.operator.user,
        via="console",
        act=act,
        target_type=act.partition(".")[0],
        target_id=str(uuid4()),
        **facts,
    )


def search(scene: Scene, before: int | None = None, **filters: Any) -> Page[AuditEntry]:
    return trail.search(scene.organization, Filters(**filters), before)


def ids(entries: Sequence[AuditEntry]) -> list[int]:
    return [entry.pk for entry in entries]


def test_entries_come_newest_first_in_pages_that_neither_skip_nor_repeat(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = ids(search(scene).rows)
    assert everything == sorted(everything, reverse=True)
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    walked: list[int] = []
    before = None
    while True:
        found = search(scene, before)
        walked += ids(found.rows)
        before = found.older
        if before is None:
            break
    assert walked == everything


def test_nothing_of_another_organization_is_found(scene: Scene) -> None:
    other = new_scene("Another")
    entry = write(other)
    assert entry.pk not in ids(search(scene).rows)
    assert not search(scene, target_id=entry.target_id).rows
    assert not search(scene, who=other.operator.user).rows


def test_a_persons_entries_are_those_through_his_keys_too(scene: Scene) -> None:
    user = scene.operator.user
    by_hand = write(scene)
    actor = keys.authenticate(scene.provisioned.members[roles.OPERATOR].api_key, None)
    datasets.disarm(actor, scene.dataset.pk)
    by_key = AuditEntry.objects.latest("pk")
    write(scene, user=scene.owner.user)
    assert ids(search(scene, who=user).rows) == [by_key.pk, by_hand.pk]
    assert ids(search(scene, who=actor.api_key).rows) == [by_key.pk]


def test_an_act_and_a_kind_of_target_narrow(scene: Scene) -> None:
    issued, pinged = write(scene), write(scene, "endpoint.ping")
    assert ids(search(scene, act="endpoint.ping").rows) == [pinged.pk]
    assert ids(search(scene, act="command.issue").rows) == [issued.pk]
    assert pinged.pk in ids(search(scene, target_types=["endpoint"]).rows)
    assert issued.pk not in ids(search(scene, target_types=["endpoint"]).rows)
    assert not search(scene, act="endpoint.ping", who=scene.owner.user).rows


def test_everything_done_to_one_thing_is_found(scene: Scene) -> None:
    entries = search(scene, target_id=str(scene.dataset.pk)).rows
    assert [entry.act for entry in entries] == ["dataset.arm", "dataset.create"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, [4, 3, 2, 1, 0]),
        (2, None, [4, 3, 2]),
        (None, 2, [1, 0]),
        (1, 3, [2, 1]),
        (5, None, []),
        (None, 0, []),
        (-9, 9, [4, 3, 2, 1, 0]),
    ],
)
def test_times_bound_from_and_up_to_but_without_the_end(
    since: int | None, until: int | None, expected: list[int]
) -> None:
    scene = new_scene("With a past")
    # Another organization's entries lie between, as in life.
    other = new_scene("Another")
    person = scene.viewer.user
    entries = []
    for minute in range(5):
        write(other, at=NOON + timedelta(minutes=minute))
        entries.append(write(scene, at=NOON + timedelta(minutes=minute), user=person))
    bounds: dict[str, Any] = {
        name: NOON + timedelta(minutes=minute)
        for name, minute in (("since", since), ("until", until))
        if minute is not None
    }
    # Those of setting up the scene are by others.
    found = [entry for entry in search(scene, **bounds).rows if entry.user == person]
    assert found == [entries[minute] for minute in expected]


def test_an_organization_without_entries_has_none_at_any_time(scene: Scene) -> None:
    fresh = provision("Fresh").organization
    assert trail.search(fresh, Filters(since=NOON, until=NOON), None) == Page([])


def test_a_look_ends_where_it_was_said_and_goes_on_from_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = write(scene, "command.retract")
    for _ in range(7):
        write(scene)
    monkeypatch.setattr(paging, "LOOKED_AT", 5)
    first = search(scene, act="command.retract")
    assert not first.rows
    assert first.older
    assert first.looked_to == AuditEntry.objects.get(pk=first.older).at
    second = search(scene, first.older, act="command.retract")
    assert ids(second.rows) == [rare.pk]


def test_a_full_page_goes_on_after_its_last_row_also_within_a_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [write(scene) for _ in range(4)]
    monkeypatch.setattr(paging, "PAGE_SIZE", 3)
    found = search(scene, act="command.issue")
    assert (found.older, found.looked_to) == (entries[1].pk, None)


def test_who_acted_is_known_of_those_too_who_left(scene: Scene) -> None:
    stranger = new_scene("Another").operator.user
    write(scene, user=stranger)
    write(scene)
    assert set(trail.who_acted(scene.organization)) == {
        scene.owner.user,
        scene.operator.user,
        stranger,
    }
    assert scene.owner.user not in trail.who_acted(new_scene("A third").organization)
