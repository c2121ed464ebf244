"""Reading commands: an organization's own, filtered, with a constant number of queries."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from commands import datasets, issuing, lifecycle, queries
from commands.models import Command
from commands.queries import Filters, Span
from organizations import keys
from organizations.patience import TookTooLong
from organizations.rules import roles
from tests import factories
from tests.factories import Scene, attempts, fresh, new_scene
from webhooks import endpoints


def found(scene: Scene, **filters: object) -> list[UUID]:
    return [c.pk for c in queries.matching(scene.organization, Filters(**filters))]  # type: ignore[arg-type]


def test_a_list_has_the_newest_first_and_nobody_elses(scene: Scene) -> None:
    first, second = scene.issued(), scene.issued()
    new_scene("Another").issued()

    assert found(scene) == [second.pk, first.pk]


def test_nobody_finds_another_organizations_command(scene: Scene) -> None:
    theirs = new_scene("Another").issued()

    for unknown in (theirs.pk, uuid4()):
        with pytest.raises(Command.DoesNotExist):
            queries.find(scene.viewer, unknown)


def test_a_list_is_narrowed_by_state(scene: Scene) -> None:
    scene.issued()
    queued = scene.dispatched()

    assert found(scene, state="queued") == [queued.pk]
    assert found(scene, state="acked") == []


def test_a_list_is_narrowed_by_dataset_and_experiment(scene: Scene) -> None:
    scene.issued()
    experiment = datasets.create_experiment(scene.owner, "Second")
    dataset = datasets.create_dataset(scene.owner, experiment, "Second")
    command = issuing.issue(scene.operator, dataset, "t-2", "hold", {}).command

    assert found(scene, dataset_id=dataset.pk) == [command.pk]
    assert found(scene, experiment_id=experiment.pk) == [command.pk]
    assert found(scene, experiment_id=scene.experiment.pk, dataset_id=dataset.pk) == []


def test_a_list_is_narrowed_by_who_issued_in_person_or_with_a_key(scene: Scene) -> None:
    owner = scene.provisioned.members[roles.OWNER]
    with_a_key = keys.authenticate(owner.api_key, None)
    by_key = issuing.issue(with_a_key, scene.dataset, "by key", "hold", {}).command
    in_person = issuing.issue(scene.owner, scene.dataset, "in person", "hold", {}).command
    lifecycle.dispatch(scene.owner, scene.issued().pk)
    reissued = issuing.reissue(with_a_key, scene.failed().pk, "again").command
    assert with_a_key.api_key

    of_the_owner = [reissued.pk, in_person.pk, by_key.pk]
    assert found(scene, issued_by_id=scene.owner.user.pk) == of_the_owner
    assert found(scene, api_key_id=with_a_key.api_key.pk) == [reissued.pk, by_key.pk]
    assert found(scene, api_key_id=with_a_key.api_key.pk, search="by") == [by_key.pk]
    assert found(scene, issued_by_id=scene.viewer.user.pk) == []


def test_a_list_is_narrowed_by_the_endpoint_that_commands_went_to(scene: Scene) -> None:
    there = scene.dispatched()
    scene.issued()
    other = scene.another_endpoint()

    assert found(scene, endpoint_id=scene.endpoint.pk) == [there.pk]
    assert found(scene, endpoint_id=scene.endpoint.pk, issued_by_id=scene.operator.user.pk) == [
        there.pk
    ]
    assert found(scene, endpoint_id=other.pk) == []


@pytest.mark.parametrize("by", ["nothing", "issuer", "endpoint", "time"])
def test_a_span_bounds_every_order(scene: Scene, by: str) -> None:
    first, second, third = (scene.dispatched() for _ in range(3))
    filters = {
        "nothing": Filters(),
        "issuer": Filters(issued_by_id=scene.operator.user.pk),
        "endpoint": Filters(endpoint_id=scene.endpoint.pk),
        "time": Filters(since=first.issued_at, until=third.issued_at + timedelta(seconds=1)),
    }[by]

    def between(span: Span) -> list[UUID]:
        return [c.pk for c in queries.matching(scene.organization, filters, span)]

    assert between(Span()) == [third.pk, second.pk, first.pk]
    assert between(Span(before=third.pk)) == [second.pk, first.pk]
    assert between(Span(after=first.pk)) == [third.pk, second.pk]
    assert between(Span(after=first.pk, before=third.pk)) == [second.pk]


def test_a_search_that_walks_too_long_is_given_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SEARCH_S", 0.02)
    with (
        pytest.raises(TookTooLong),
        queries.searching(Filters(state="acked")),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(5)")
    # Outside, and where nothing narrows, nothing hurries.
    with queries.searching(Filters(state="acked")):
        pass
    with queries.searching(Filters()), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")


def test_since_is_inclusive_and_until_exclusive(scene: Scene) -> None:
    at = fresh(scene.issued()).issued_at

    assert len(found(scene, since=at)) == 1
    assert found(scene, since=at + timedelta(microseconds=1)) == []
    assert found(scene, until=at) == []
    assert len(found(scene, until=at + timedelta(microseconds=1))) == 1


def test_a_search_finds_the_start_of_a_token_or_an_id(scene: Scene) -> None:
    command = scene.issued(token="vehicle-7/100%")
    scene.issued(token="vehicle-8")

    assert found(scene, search="vehicle-7") == [command.pk]
    assert found(scene, search="vehicle-7/100%") == [command.pk]
    assert found(scene, search="%") == []
    assert found(scene, search=str(command.pk)) == [command.pk]


def test_a_search_finds_a_token_that_reads_like_an_id(scene: Scene) -> None:
    command = scene.issued(token="4f9c2d1e-7a56-4e0b-9c3d-2b8f6a1d5e70")
    assert found(scene, search=command.client_token) == [command.pk]


def test_attempts_are_listed_newest_first(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503, 500])

    assert [a.number for a in queries.attempts_of(fresh(command))] == [2, 1]
    assert queries.attempts_of(scene.issued()) == []


def test_the_refusal_to_come_is_shown_before_the_act(scene: Scene) -> None:
    command = fresh(scene.issued())
    assert queries.dispatch_refusal(command) is None

    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    assert queries.dispatch_refusal(command) == "endpoint_disabled"
    datasets.disarm(scene.owner, scene.dataset.pk)
    assert queries.dispatch_refusal(fresh(command)) == "dataset_unarmed"
    lifecycle.retract(scene.operator, command.pk)
    assert queries.dispatch_refusal(fresh(command)) == "retracted"


def diagnosed(command: Command) -> str:
    command = fresh(command)
    return queries.diagnose(command, queries.attempts_of(command)).code


def test_a_diagnosis_reads_the_command_and_its_attempts(scene: Scene) -> None:
    command = scene.dispatched()
    codes = [diagnosed(scene.issued()), diagnosed(command)]
    factories.fail_with(command, [503] * 4)
    codes.append(diagnosed(command))
    factories.fail_with(command, [429])
    codes.append(diagnosed(command))

    assert codes == ["never_dispatched", "retrying", "retrying", "receiver_errors"]


def test_a_diagnosis_does_not_depend_on_the_order_of_the_attempts(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503, 400])
    oldest_first = attempts(command)
    command = fresh(command)

    assert queries.diagnose(command, oldest_first) == queries.diagnose(command, oldest_first[::-1])
    assert queries.diagnose(command, oldest_first).code == "receiver_refused"


def test_a_list_costs_one_query_however_long_it_is(scene: Scene) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            for command in queries.of_organization(scene.organization):
                assert command.dataset.experiment.name
                assert command.issued_by.email
                assert command.delivery is None or command.delivery.endpoint.name
        return len(captured)

    scene.delivered()
    assert cost() == 1
    for _ in range(5):
        scene.delivered()
    assert cost() == 1
