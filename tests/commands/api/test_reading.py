"""GET /api/commands/list and GET /api/commands/{id}"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from commands import datasets, issuing, queries
from commands.rules.states import State
from organizations import keys
from organizations.api import paging
from organizations.clock import rfc3339
from organizations.patience import TookTooLong
from organizations.rules import roles
from tests.commands.api.test_issue import FIELDS
from tests.factories import Scene, fail_with, new_scene
from tests.organizations.api.client import Api, content, problem
from tests.organizations.api.test_paging import walk


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.VIEWER)


def ids(api: Api, **query: str) -> list[str]:
    return [row["id"] for row in api.items("commands/list", **query)]


def test_a_row_has_the_fields_of_a_command_and_no_others(scene: Scene, api: Api) -> None:
    for state in State:
        scene.in_state(state)

    rows = api.items("commands/list")

    assert {frozenset(row) for row in rows} == {frozenset(FIELDS)}
    assert {row["state"] for row in rows} == {state.value for state in State}


@pytest.mark.parametrize("state", list(State))
def test_a_list_is_narrowed_by_state(scene: Scene, api: Api, state: State) -> None:
    for each in State:
        scene.in_state(each)

    assert [row["state"] for row in api.items("commands/list", state=state)] == [state]


def test_a_list_is_narrowed_by_experiment_and_dataset(scene: Scene, api: Api) -> None:
    experiment = datasets.create_experiment(scene.owner, "Second")
    dataset = datasets.create_dataset(scene.owner, experiment, "Second")
    here = scene.issued()
    there = issuing.issue(scene.operator, dataset, "there", "n", {}).command

    assert ids(api, datasetId=str(dataset.pk)) == [str(there.pk)]
    assert ids(api, experimentId=str(scene.experiment.pk)) == [str(here.pk)]
    assert ids(api, experimentId=str(experiment.pk), datasetId=str(scene.dataset.pk)) == []
    assert ids(api, datasetId="no-such-dataset") == []


def test_a_list_is_narrowed_by_who_issued_and_by_the_key(scene: Scene, api: Api) -> None:
    scene.issued()
    key, text = keys.create_key(scene.organization, scene.owner.user, "fleet")
    by_key = issuing.issue(keys.authenticate(text, None), scene.dataset, "k", "n", {}).command
    in_person = issuing.issue(scene.owner, scene.dataset, "p", "n", {}).command
    start = f"cck_{key.prefix}"

    assert ids(api, issuedBy=scene.owner.user.email) == [str(in_person.pk), str(by_key.pk)]
    assert ids(api, apiKey=start) == [str(by_key.pk)]
    assert ids(api, apiKey=start, issuedBy=scene.operator.user.email) == []
    assert ids(api, issuedBy="nobody@example.com") == []
    assert ids(api, apiKey="cck_00000000") == []


def test_a_key_of_another_organization_finds_nothing(scene: Scene, api: Api) -> None:
    theirs = new_scene("Another")
    key = theirs.organization.api_keys.first()
    assert key
    scene.issued()

    assert ids(api, apiKey=f"cck_{key.prefix}") == []
    assert ids(api, issuedBy=theirs.operator.user.email) == []


def test_a_whole_key_in_an_address_is_refused_and_not_repeated(scene: Scene, api: Api) -> None:
    whole = scene.provisioned.members[roles.OWNER].api_key
    told = problem(api.get("commands/list", apiKey=whole), 400, "validation_error")

    assert list(told["errors"]) == ["apiKey"]
    assert whole not in str(told)


@pytest.mark.parametrize(
    "start", ["", "cck_", "cck_0a1b2c3", "xcck_0a1b2c3d", "cck_0A1B2C3D", "cck_0a1b2c3d\n"]
)
def test_what_is_not_the_start_of_a_key_is_refused(api: Api, start: str) -> None:
    problem(api.get("commands/list", apiKey=start), 400, "validation_error")


def test_a_list_is_narrowed_by_the_endpoint_and_the_start_of_a_token(
    scene: Scene, api: Api
) -> None:
    there, logged = scene.dispatched(token="dock-7%"), scene.issued(token="undock-7")

    assert ids(api, endpointId=str(scene.endpoint.pk)) == [str(there.pk)]
    assert ids(api, endpointId="no-such-endpoint") == []
    assert ids(api, clientTokenPrefix="dock-7%") == [str(there.pk)]
    assert ids(api, clientTokenPrefix="un") == [str(logged.pk)]
    assert ids(api, clientTokenPrefix="%") == []
    assert ids(api, clientTokenPrefix=str(there.pk)) == []


def test_a_page_ends_before_it_gets_too_large_and_the_next_goes_on(
    scene: Scene, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [scene.issued(filling="x" * 400) for _ in range(5)]
    huge = scene.issued(filling="x" * 3000)
    monkeypatch.setattr(paging, "PAGE_BYTES", 1000)

    pages = [[row["id"] for row in page] for page in walk(api, "commands/list")]

    # A row that is too large by itself is a page of its own.
    assert [len(page) for page in pages] == [1, 2, 2, 1]
    assert [row for page in pages for row in page] == [str(c.pk) for c in (huge, *reversed(large))]


def test_a_search_that_walks_too_long_says_what_to_do(
    scene: Scene, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(filters: object) -> None:
        raise TookTooLong

    monkeypatch.setattr(queries, "searching", never)
    told = problem(api.get("commands/list", state="acked"), 400, "search_too_broad")

    assert "narrow its time by since and until" in told["detail"]


def test_since_is_inclusive_and_until_exclusive(scene: Scene, api: Api) -> None:
    at = scene.issued().issued_at
    instant, later = rfc3339(at), rfc3339(at + timedelta(microseconds=1))

    assert len(ids(api, since=instant, until=later)) == 1
    assert ids(api, since=later) == []
    assert ids(api, until=instant) == []


def test_an_instant_may_have_any_offset(scene: Scene, api: Api) -> None:
    at = scene.issued().issued_at
    elsewhere = rfc3339(at + timedelta(hours=2)).replace("Z", "+02:00")

    assert len(ids(api, since=elsewhere)) == 1


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T09:30:00",
        "2026-01-31",
        "2026-01-31 09:30:00Z",
        "2026-02-30T09:30:00Z",
        "2026-01-31T24:30:00Z",
        "2026-01-31T09:30:00+25:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "20260131T093000Z",
        "yesterday",
        "1769851800",
        "",
        "٢٠٢٦-01-31T09:30:00Z",
    ],
)
def test_a_time_that_is_no_instant_is_refused(api: Api, name: str, text: str) -> None:
    told = problem(api.get("commands/list", **{name: text}), 400, "validation_error")

    assert list(told["errors"]) == [name]


@pytest.mark.parametrize("text", ["2026-01-31t09:30:00z", "2026-01-31T09:30:00.1234567890Z"])
def test_every_form_of_rfc_3339_is_taken(api: Api, text: str) -> None:
    assert ids(api, since=text) == []


@pytest.mark.parametrize("state", ["", "LOGGED", "lost", "\0"])
def test_a_state_that_is_none_is_refused(api: Api, state: str) -> None:
    problem(api.get("commands/list", state=state), 400, "validation_error")


def test_a_command_shows_its_timeline_oldest_first_and_its_diagnosis(
    scene: Scene, api: Api
) -> None:
    command = scene.dispatched()
    fail_with(command, [503, 400])

    detail = content(api.get(f"commands/{command.pk}"))

    assert set(detail) == FIELDS | {"timeline", "diagnosis"}
    assert [line["kind"] for line in detail["timeline"]] == ["issued", "dispatched", "failed"]
    assert detail["timeline"][0] == {
        **detail["timeline"][0],
        "fromState": None,
        "toState": "logged",
        "reason": None,
        "by": scene.operator.user.email,
        "via": "cli",
    }
    assert detail["timeline"][2]["by"] is None
    assert detail["diagnosis"]["code"] == "receiver_refused"
    assert set(detail["diagnosis"]) == {"code", "summary", "nextStep"}
    assert (detail["attempts"], detail["failureReason"]) == (2, "refused")


def test_a_reissue_names_the_command_before_it(scene: Scene, api: Api) -> None:
    failed = scene.failed()
    again = issuing.reissue(scene.operator, failed.pk, "again").command

    assert content(api.get(f"commands/{again.pk}"))["reissueOf"] == str(failed.pk)


@pytest.mark.parametrize(
    "path",
    ["commands/list", "datasets", "experiments", "webhooks/endpoints", "webhooks/deliveries"],
)
def test_a_list_takes_as_many_queries_for_30_rows_as_for_3(scene: Scene, path: str) -> None:
    api = Api.of(scene)
    api.get(path)  # the first use of a key is noted

    def queries_after(more: int) -> int:
        for number in range(more):
            scene.delivered()
            scene.in_state("retracted")
            experiment = datasets.create_experiment(scene.owner, f"{number}")
            dataset = datasets.create_dataset(scene.owner, experiment, f"{number}")
            datasets.arm(scene.owner, dataset.pk)
            scene.another_endpoint()
        with CaptureQueriesContext(connection) as captured:
            assert len(api.items(path)) >= more
        return len(captured)

    assert queries_after(3) == queries_after(27)


def test_a_command_takes_as_many_queries_with_a_long_timeline_as_with_a_short_one(
    scene: Scene, api: Api
) -> None:
    short, long = scene.dispatched(), scene.dispatched()
    fail_with(long, [503] * 4)

    def queries(command_id: object) -> int:
        with CaptureQueriesContext(connection) as captured:
            api.get(f"commands/{command_id}")
        return len(captured)

    queries(short.pk)
    assert queries(short.pk) == queries(long.pk)
