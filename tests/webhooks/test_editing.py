"""An endpoint edited by its owner: what changes, what starts from zero, who is the default."""

from __future__ import annotations

from typing import Any

import pytest

from organizations.actors import NotPermitted
from organizations.models import AuditEntry
from tests import factories
from tests.factories import RECEIVER_URL, Scene, delivery_of, new_scene
from webhooks import endpoints, secrets
from webhooks.endpoints import FieldRefused
from webhooks.engine import claims
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.rules.addresses import UrlNotAllowed

ELSEWHERE = "https://93.184.216.35/elsewhere"


def edit(scene: Scene, endpoint: Endpoint | None = None, **changes: Any) -> Endpoint:
    return endpoints.edit(scene.owner, (endpoint or scene.endpoint).pk, changes)


def failures(endpoint: Endpoint) -> int:
    return endpoints.health_of([endpoint])[endpoint.pk].consecutive_failures


# --- fields -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "New name"),
        ("description", "For tests"),
        ("url", ELSEWHERE),
        ("policy", "telemetry"),
        ("event_types", ["command.*", "endpoint.disabled"]),
        ("max_in_flight", 3),
        ("max_in_flight", None),
    ],
)
def test_a_field_is_changed_and_the_others_stay(scene: Scene, field: str, value: Any) -> None:
    before = {f.name: getattr(scene.endpoint, f.name) for f in Endpoint._meta.concrete_fields}

    endpoint = edit(scene, **{field: value})

    after = {f.name: getattr(endpoint, f.name) for f in Endpoint._meta.concrete_fields}
    assert after.pop(field) == value
    for name in ("health_since", "health_after", field):
        before.pop(name, None)
        after.pop(name, None)
    assert after == before


def test_a_url_is_checked_and_normalised(scene: Scene) -> None:
    assert edit(scene, url="https://93.184.216.35:443").url == "https://93.184.216.35/"
    with pytest.raises(UrlNotAllowed):
        edit(scene, url="https://10.0.0.1/")


@pytest.mark.usefixtures("loopback_allowed")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/api/events", "http://localhost:8000/", "http://[::1]:8000"]
)
def test_the_console_is_no_receiver(scene: Scene, url: str) -> None:
    with pytest.raises(UrlNotAllowed, match="console's own"):
        edit(scene, url=url)
    with pytest.raises(UrlNotAllowed, match="console's own"):
        scene.another_endpoint(url=url)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "often"),
        ("event_types", ["No Type"]),
        ("event_types", ["command*"]),
        ("event_types", ["*.failed"]),
        ("event_types", [f"a.b{n}" for n in range(101)]),
        ("max_in_flight", 0),
        ("max_in_flight", 1001),
        ("headers", {"Host": "elsewhere"}),
    ],
)
def test_a_value_that_an_endpoint_may_not_have_changes_nothing(
    scene: Scene, field: str, value: Any
) -> None:
    with pytest.raises(FieldRefused) as refusal:
        edit(scene, name="New name", **{field: value})

    assert refusal.value.field == field
    scene.endpoint.refresh_from_db()
    assert scene.endpoint.name != "New name"


def test_a_subscription_is_kept_once(scene: Scene) -> None:
    assert edit(scene, event_types=["a.b", "*", "a.b"]).event_types == ["a.b", "*"]


def test_an_edit_is_audited_with_before_and_after(scene: Scene) -> None:
    edit(scene, url=ELSEWHERE, headers={"X-Key": "confidential"})

    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.before["url"], entry.after["url"]) == (
        "endpoint.edit",
        RECEIVER_URL,
        ELSEWHERE,
    )
    assert entry.after["headers"] == ["X-Key"]
    assert "confidential" not in str(entry.before) + str(entry.after)


def test_an_edit_of_nothing_does_nothing(scene: Scene) -> None:
    factories.fail_with(scene.send(), [503])
    entries = AuditEntry.objects.count()

    assert failures(edit(scene)) == 1
    assert AuditEntry.objects.count() == entries


@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_only_an_owner_edits(scene: Scene, role: str) -> None:
    with pytest.raises(NotPermitted):
        endpoints.edit(scene.provisioned.actor(role), scene.endpoint.pk, {"name": "Mine"})


def test_another_organization_s_endpoint_does_not_exist(scene: Scene) -> None:
    with pytest.raises(Endpoint.DoesNotExist):
        edit(scene, new_scene("Another").endpoint, name="Mine")


# --- what follows the change --------------------------------------------------------------------


def test_attempts_that_begin_later_follow_the_change(scene: Scene) -> None:
    delivery = scene.send()
    factories.fail_with(delivery, [503])

    edit(scene, url=ELSEWHERE)

    assert factories.claim(delivery).url == ELSEWHERE


def test_deliveries_that_exist_keep_their_policy(scene: Scene) -> None:
    delivery = scene.send()

    endpoint = edit(scene, policy="event")

    assert delivery_of(delivery).policy == "command"
    assert scene.send(endpoint).policy == "event"


def test_counters_of_an_enabled_endpoint_start_from_zero(scene: Scene) -> None:
    factories.fail_with(scene.send(), [503] * 3)

    endpoint = edit(scene, description="The certificate was mended.")

    assert failures(endpoint) == 0
    assert endpoint.health_since > scene.endpoint.health_since
    factories.fail_with(scene.send(), [503])
    assert failures(endpoint) == 1


def test_what_was_on_the_wire_then_is_not_counted_either(scene: Scene) -> None:
    delivery = scene.send()
    attempt = factories.claim(delivery)

    endpoint = edit(scene, url=ELSEWHERE)
    factories.record(factories.answer(attempt, 503))

    assert failures(endpoint) == 0
    assert Attempt.objects.get(pk=attempt.attempt_id).verdict == "retry"


def test_a_disabled_endpoint_stays_disabled(scene: Scene) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")

    endpoint = edit(scene, url=ELSEWHERE)

    assert (endpoint.enabled, endpoint.disabled_reason) == (False, "broken")
    assert endpoint.health_since == scene.endpoint.health_since


# --- the default --------------------------------------------------------------------------------


def default_of(scene: Scene) -> list[Endpoint]:
    return list(Endpoint.objects.filter(organization=scene.organization, is_default=True))


def test_an_owner_chooses_another_default(scene: Scene) -> None:
    other = scene.another_endpoint()

    assert edit(scene, other, is_default=True).is_default
    assert default_of(scene) == [other]
    assert edit(scene, other, is_default=True).is_default


def test_the_default_receives_commands(scene: Scene) -> None:
    deaf = scene.another_endpoint("event")

    with pytest.raises(FieldRefused, match="receives no commands"):
        edit(scene, deaf, is_default=True)
    edit(scene, deaf, is_default=True, receives_commands=True)

    assert default_of(scene) == [deaf]


@pytest.mark.parametrize("change", [{"is_default": False}, {"receives_commands": False}])
def test_a_default_never_just_ends(scene: Scene, change: dict[str, Any]) -> None:
    with pytest.raises(FieldRefused):
        edit(scene, **change)

    assert default_of(scene) == [scene.endpoint]
    edit(scene, scene.another_endpoint(), is_default=True)
    edit(scene, **change)


def test_the_first_that_begins_to_receive_commands_is_the_default(scene: Scene) -> None:
    deaf, late = scene.another_endpoint("event"), scene.another_endpoint("event")
    endpoints.archive(scene.owner, scene.endpoint.pk)

    edit(scene, deaf, receives_commands=True)
    edit(scene, late, receives_commands=True)

    assert default_of(scene) == [deaf]


def test_another_organization_keeps_its_default(scene: Scene) -> None:
    stranger = new_scene("Strangers")

    edit(scene, scene.another_endpoint(), is_default=True)

    assert default_of(stranger) == [stranger.endpoint]


# --- headers ------------------------------------------------------------------------------------


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    return dict(secrets.decrypt_headers(endpoint.headers_ciphertext))


def test_headers_are_set_changed_and_removed_by_name(scene: Scene) -> None:
    edit(scene, headers={"X-Tenant": "seven", "Authorization": "Bearer confidential"})
    endpoint = edit(scene, headers={"x-tenant": "eight", "X-Region": "north"})

    assert headers_of(endpoint) == {
        "x-tenant": "eight",
        "Authorization": "Bearer confidential",
        "X-Region": "north",
    }
    assert endpoint.header_names == ["Authorization", "X-Region", "x-tenant"]
    gone = edit(scene, headers=dict.fromkeys(endpoint.header_names))
    assert (gone.header_names, gone.headers_ciphertext) == ([], "")


def test_values_of_headers_are_encrypted(scene: Scene) -> None:
    endpoint = scene.another_endpoint(headers={"Authorization": "Bearer confidential"})

    assert "confidential" not in endpoint.headers_ciphertext
    assert headers_of(endpoint) == {"Authorization": "Bearer confidential"}


def test_headers_that_no_key_reads_are_not_thrown_away(scene: Scene) -> None:
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(
        header_names=["X-Key"], headers_ciphertext="written with a lost key"
    )

    with pytest.raises(FieldRefused, match="SECRETS_ENCRYPTION_KEYS"):
        edit(scene, headers={"X-Other": "x"})


def test_nothing_is_due_but_what_was(scene: Scene) -> None:
    """An edit makes no attempt, and takes none away."""
    delivery = scene.send()
    edit(scene, url=ELSEWHERE)

    [claimed] = claims.claim(10, factories.WORKER)

    assert claimed.delivery_id == delivery.pk
    assert Delivery.objects.count() == 1
