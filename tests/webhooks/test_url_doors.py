"""Where webhooks may not go, they go through no door: API, console, admin, commands, nor at the send."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.urls import reverse

from organizations import exact_json
from organizations.models import Organization
from organizations.rules import roles
from tests import factories
from tests.administration import page_of as admin_page_of
from tests.administration import staff
from tests.factories import RECEIVER_URL, Scene, delivery_of
from tests.organizations.api.client import Api, problem
from tests.visitors import Visitor
from webhooks import endpoints
from webhooks.engine import attempts
from webhooks.engine.sender import Sender, SenderConfig
from webhooks.models import Endpoint
from webhooks.rules.addresses import UrlNotAllowed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

FORBIDDEN = {
    "plain http": "http://93.184.216.34/hook",
    "another scheme": "ftp://93.184.216.34/hook",
    "a user and a password": "https://user:confidential@93.184.216.34/hook",
    "a fragment": "https://93.184.216.34/hook#part",
    "a port that is none": "https://93.184.216.34:70000/hook",
    "a port of mail": "https://93.184.216.34:25/hook",
    "no host": "https:///hook",
    "loopback": "https://127.0.0.1/hook",
    "this machine by name": "https://localhost/hook",
    "loopback in other digits": "https://0x7f.1/hook",
    "loopback in IPv6": "https://[::1]/hook",
    "private": "https://10.1.2.3/hook",
    "private in IPv6": "https://[fd00::1]/hook",
    "private inside of IPv6": "https://[::ffff:10.1.2.3]/hook",
    "private inside of NAT64": "https://[64:ff9b::a01:203]/hook",
    "private inside of 6to4": "https://[2002:a01:203::1]/hook",
    "link-local": "https://169.254.169.254/latest/meta-data",
    "carrier-grade NAT": "https://100.64.0.1/hook",
    "multicast": "https://224.0.0.1/hook",
    "reserved": "https://240.0.0.1/hook",
}
# Told by somebody who may: the words with which the door was shut.
Door = Callable[[Scene, str], str]


def api_registers(scene: Scene, url: str) -> str:
    answer = Api.of(scene).post("webhooks/endpoints", {"name": "New", "url": url})
    return str(problem(answer, 400, "url_not_allowed")["detail"])


def api_edits(scene: Scene, url: str) -> str:
    answer = Api.of(scene).patch(f"webhooks/endpoints/{scene.endpoint.pk}", {"url": url})
    return str(problem(answer, 400, "url_not_allowed")["detail"])


def console_registers(scene: Scene, url: str) -> str:
    path, owner = reverse("register_endpoint"), Visitor(scene.owner)
    token = owner.get(path).value("token")
    page = owner.post(path, token=token, name="New", url=url, policy="command")
    return refusal_beside_the_url(page.status, page.html)


def console_edits(scene: Scene, url: str) -> str:
    page = Visitor(scene.owner).post(
        reverse("edit_endpoint", args=[scene.endpoint.pk]),
        name=scene.endpoint.name,
        url=url,
        policy="command",
        receives_commands="on",
        is_default="on",
        **{"initial-url": scene.endpoint.url},
    )
    return refusal_beside_the_url(page.status, page.html)


def refusal_beside_the_url(status: int, html: str) -> str:
    assert status == 422
    beside = html.partition('id="id_url_error"')[2].partition("</p>")[0]
    return beside.rpartition(">")[2].strip()


def a_service(scene: Scene, url: str) -> str:
    """What management commands and whatever comes later must use."""
    with pytest.raises(UrlNotAllowed) as refusal:
        endpoints.create(scene.owner, endpoints.NewEndpoint("New", url))
    return refusal.value.reason


@pytest.mark.parametrize("url", FORBIDDEN.values(), ids=FORBIDDEN)
@pytest.mark.parametrize(
    "door", [api_registers, api_edits, console_registers, console_edits, a_service]
)
def test_a_forbidden_url_is_refused_with_the_reason_and_nothing_is_made(
    scene: Scene, door: Door, url: str
) -> None:
    reason = door(scene, url)

    assert reason.endswith(".")
    assert "confidential" not in reason
    assert list(Endpoint.objects.values_list("url", flat=True)) == [RECEIVER_URL]


@pytest.mark.parametrize("url", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_admin_changes_no_url_at_all(scene: Scene, url: str) -> None:
    name = {"name": "Renamed", "description": "", "event_types": "", "max_in_flight": ""}

    staff(scene.owner).post(admin_page_of(scene.endpoint), {**name, "url": url})

    assert list(Endpoint.objects.values_list("name", "url")) == [("Renamed", RECEIVER_URL)]


@pytest.mark.parametrize("url", FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_came_into_the_table_by_hand_is_not_sent_to(scene: Scene, url: str) -> None:
    Endpoint.objects.update(url=url)
    delivery = scene.send()
    sender = Sender(SenderConfig(deadline_s=5, addresses=endpoints.address_policy()))

    factories.record(attempts.make(sender, factories.claim(delivery)))
    sender.close()

    [attempt] = factories.attempts(delivery)
    assert (attempt.error_kind, attempt.status_code) == ("blocked_address", None)
    assert "confidential" not in attempt.error
    assert delivery_of(delivery).failure_reason == "refused"


def test_the_command_that_seeds_the_demo_makes_nothing_where_its_receiver_is_not_allowed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("CONSOLE_DATA_DIR", str(tmp_path))

    with pytest.raises(UrlNotAllowed, match="https"):
        call_command("seed_demo")

    assert Endpoint.objects.count() == Organization.objects.count() == 1


def test_the_command_that_makes_an_organization_makes_no_endpoint(db: None) -> None:
    call_command("bootstrap", "--json")

    assert Organization.objects.count() == 1
    assert not Endpoint.objects.exists()


def test_one_that_is_allowed_passes_each_door(scene: Scene) -> None:
    """The doors are shut by the URL, not by a form that these tests fill in wrongly."""
    elsewhere = "https://93.184.216.35/hook"
    path, owner = reverse("register_endpoint"), Visitor(scene.owner)
    token = owner.get(path).value("token")

    owner.post(path, token=token, name="New", url=elsewhere, policy="command")
    Visitor(scene.owner).post(
        reverse("edit_endpoint", args=[scene.endpoint.pk]),
        name=scene.endpoint.name,
        url=elsewhere,
        policy="command",
        receives_commands="on",
        is_default="on",
        **{"initial-url": scene.endpoint.url},
    )
    Api.of(scene).send("webhooks/endpoints", exact_json.dumps({"name": "Newer", "url": elsewhere}))

    assert list(Endpoint.objects.values_list("url", flat=True)) == [elsewhere] * 3
    assert Api.of(scene, roles.VIEWER).items("webhooks/endpoints")
