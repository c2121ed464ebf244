"""Issue, dispatch, retract, reissue in the console: shown first, done by POST, done once."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from commands import datasets
from commands.models import Command
from commands.rules.states import State
from organizations.models import AuditEntry
from tests.factories import Scene, fresh, new_scene, story
from tests.visitors import Page, Visitor
from webhooks import endpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def address(act: str, command: Command) -> str:
    return reverse(act, args=[command.pk])


def acted(page: Page) -> dict[str, str]:
    event: dict[str, str] = json.loads(page.response.headers["HX-Trigger"])["acted"]
    return event


# --- issue --------------------------------------------------------------------------------------


def new_command(scene: Scene, **changes: str) -> dict[str, str]:
    """The form as somebody filled it in."""
    wanted = {
        "dataset": str(scene.dataset.pk),
        "name": "dock",
        "client_token": "dock-1",
        "parameters": '{"berth": 4, "speed": 1.10}',
    }
    return wanted | changes


def test_issuing_leads_to_the_commands_page(scene: Scene) -> None:
    answer = Visitor(scene.operator).post(reverse("issue"), **new_command(scene))
    command = Command.objects.get(client_token="dock-1")
    assert answer.to == address("command", command)
    assert command.parameters == '{"berth":4,"speed":1.10}'
    assert AuditEntry.objects.get(target_id=command.pk).via == "console"


def test_the_same_form_twice_issues_one_command(scene: Scene) -> None:
    operator = Visitor(scene.operator)
    first, second = (operator.post(reverse("issue"), **new_command(scene)) for _ in range(2))
    assert first.to == second.to
    assert Command.objects.count() == 1


def test_each_form_has_a_token_of_its_own(scene: Scene) -> None:
    operator = Visitor(scene.operator)
    tokens = {operator.get(reverse("issue")).value("client_token") for _ in range(3)}
    assert len(tokens) == 3


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("parameters", '{"a":NaN}', "NaN is not JSON"),
        ("parameters", '{"a":1,"a":2}', "occurs twice"),
        ("parameters", "[1]", "JSON object"),
        ("parameters", "{", "Not JSON"),
        ("name", "", "required"),
        ("client_token", "x" * 201, "at most 200"),
        ("dataset", "", "required"),
    ],
)
def test_an_error_stands_beside_its_field(scene: Scene, field: str, value: str, said: str) -> None:
    answer = Visitor(scene.operator).post(reverse("issue"), **new_command(scene, **{field: value}))
    assert answer.status == 422
    assert said in answer.text
    assert Command.objects.count() == 0


def test_a_token_of_another_command_is_refused_beside_its_field(scene: Scene) -> None:
    scene.issued(token="dock-1", name="undock")
    answer = Visitor(scene.operator).post(reverse("issue"), **new_command(scene))
    assert answer.status == 409
    assert "used for a command with other content" in answer.text


def test_parameters_are_checked_while_typing_by_the_rules_of_the_issue(scene: Scene) -> None:
    operator, path = Visitor(scene.operator), reverse("check_parameters")
    assert "2 members" in operator.post_sheet(path, parameters='{"a":1,"b":2}').text
    assert "Infinity is not JSON" in operator.post_sheet(path, parameters="[Infinity]").text
    assert "surrogate" in operator.post_sheet(path, parameters='{"a":"\\ud800"}').text
    assert Command.objects.count() == 0


def test_another_organizations_dataset_cannot_be_chosen(scene: Scene) -> None:
    foreign = str(new_scene().dataset.pk)
    answer = Visitor(scene.operator).post(reverse("issue"), **new_command(scene, dataset=foreign))
    assert answer.status == 422


# --- dispatch -----------------------------------------------------------------------------------


def test_the_preview_says_where_when_and_until_when(scene: Scene) -> None:
    command = scene.issued()
    shown = Visitor(scene.operator).get_sheet(address("dispatch", command)).text
    assert scene.endpoint.url in shown
    assert "5 attempts: at once, then after 5 s, 25 s, 2 min 5 s and 10 min 25 s" in shown
    assert "armed" in shown
    assert "UTC" in shown
    assert fresh(command).state == State.LOGGED


def test_the_preview_is_a_page_of_its_own_too(scene: Scene) -> None:
    assert "<html" in Visitor(scene.operator).get(address("dispatch", scene.issued())).html


def dispatch_form(operator: Visitor, command: Command, timeout: str = "300") -> dict[str, str]:
    token = operator.get_sheet(address("dispatch", command)).value("token")
    return {"token": token, "ack_timeout": timeout}


def test_a_confirmed_dispatch_queues_the_command(scene: Scene) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    form = dispatch_form(operator, command, "60")
    answer = operator.post_sheet(address("dispatch", command), **form)
    assert answer.status == 204
    assert acted(answer)["message"] == "Dispatched."
    queued = fresh(command)
    assert queued.state == State.QUEUED
    assert queued.dispatched_at
    assert queued.ack_deadline
    assert (queued.ack_deadline - queued.dispatched_at).total_seconds() == 60


def test_a_second_click_does_nothing_and_complains_about_nothing(scene: Scene) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    form = dispatch_form(operator, command)
    for _ in range(2):
        assert operator.post_sheet(address("dispatch", command), **form).status == 204
    assert story(command) == ["issued", "dispatched"]


def test_without_htmx_a_dispatch_leads_back_to_the_page(scene: Scene) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    answer = operator.post(address("dispatch", command), **dispatch_form(operator, command))
    assert answer.to == address("command", command)
    assert "Dispatched." in operator.get(answer.to).text


@pytest.mark.parametrize("timeout", ["29", "3601", "", "soon"])
def test_a_time_to_acknowledge_out_of_range_is_refused(scene: Scene, timeout: str) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    form = dispatch_form(operator, command, timeout)
    answer = operator.post_sheet(address("dispatch", command), **form)
    assert answer.status == 422
    assert answer.has("id_ack_timeout_error")
    assert story(command) == ["issued"]


def test_a_refusal_is_shown_in_place_and_the_form_works_again(scene: Scene) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    form = dispatch_form(operator, command)
    datasets.disarm(scene.operator, scene.dataset.pk)
    refused = operator.post_sheet(address("dispatch", command), **form)
    assert refused.status == 409
    assert "Refused. The dataset is not armed." in refused.text
    assert refused.has("arm-first")
    assert story(command) == ["issued", "dispatch_refused"]
    datasets.arm(scene.operator, scene.dataset.pk)
    form["token"] = refused.value("token")
    assert operator.post_sheet(address("dispatch", command), **form).status == 204


def test_what_stands_in_the_way_is_said_before_the_click(scene: Scene) -> None:
    command, operator = scene.issued(), Visitor(scene.operator)
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    shown = operator.get_sheet(address("dispatch", command))
    assert "The endpoint is disabled." in shown.text
    assert "disabled>" in shown.html.partition('id="confirm"')[2].partition("</button>")[0]


def test_without_an_endpoint_the_preview_says_what_to_do(scene: Scene) -> None:
    command = scene.issued()
    type(scene.endpoint).objects.update(is_default=False)
    shown = Visitor(scene.operator).get_sheet(address("dispatch", command)).text
    assert "Register one, or choose one for the dataset" in shown


# --- retract and reissue ------------------------------------------------------------------------


def test_a_retraction_says_what_it_cannot_recall(scene: Scene) -> None:
    command, _ = scene.on_the_wire()
    operator = Visitor(scene.operator)
    shown = operator.get_sheet(address("retract", command))
    assert "Attempt 1 is on the wire now." in shown.text
    answer = operator.post_sheet(address("retract", command), reason="Wrong berth")
    assert "on the wire" in acted(answer)["message"]
    assert fresh(command).retraction_reason == "Wrong berth"


def test_nothing_is_withdrawn_by_a_get_or_by_a_reason_too_long(scene: Scene) -> None:
    command, operator = scene.dispatched(), Visitor(scene.operator)
    operator.get(address("retract", command))
    assert operator.post_sheet(address("retract", command), reason="x" * 501).status == 422
    assert fresh(command).state == State.QUEUED


def test_retracting_twice_is_once(scene: Scene) -> None:
    command, operator = scene.dispatched(), Visitor(scene.operator)
    for _ in range(2):
        assert operator.post_sheet(address("retract", command), reason="").status == 204
    assert story(command).count("retracted") == 1


def test_a_reissue_leads_to_the_new_command_once(scene: Scene) -> None:
    command, operator = scene.failed(), Visitor(scene.operator)
    token = operator.get_sheet(address("reissue", command)).value("client_token")
    answers = [
        operator.post_sheet(address("reissue", command), client_token=token) for _ in range(2)
    ]
    [again] = command.reissues.all()
    assert {answer.to for answer in answers} == {address("command", again)}


def test_a_command_that_may_still_be_carried_out_is_not_reissued(scene: Scene) -> None:
    answer = Visitor(scene.operator).post_sheet(
        address("reissue", scene.delivered()), client_token="again"
    )
    assert answer.status == 409
    assert "may still be carried out" in answer.text
