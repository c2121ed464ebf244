"""A signing secret changed while deliveries go on: what a receiver with a public library can verify.

Over real sockets and raw bytes: before, during and after a rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from organizations.actors import NotPermitted
from organizations.clock import database_now
from organizations.models import AuditEntry
from tests import factories
from tests.factories import Scene, new_scene
from tests.receivers import ReceivedRequest, ScriptedReceiver, respond
from tests.verifiers import Case, in_javascript, in_python
from tests.webhooks.engine.sending import sending
from webhooks import endpoints, secrets
from webhooks.engine import attempts
from webhooks.engine.sender import Sender
from webhooks.models import Delivery, Endpoint, EndpointSecret
from webhooks.rules import signing

Verifier = Callable[[Sequence[Case]], list[bool]]

BODIES = [
    b"{}",
    '{"name":"café"}'.encode(),
    '{"name":"🚀 \u202e"}'.encode(),
    b'{"speed":1.10,"height":1e2,"depth":-0.0}',
    b'{"serial":12345678901234567890123,"ratio":0.1000000000000000055511151231257827}',
    b'{ "b" : 1 ,\n\t"a":  [ ] }',
    b'{"html":"</script>\\u0000"}',
]


@pytest.fixture
def receiver(scene: Scene, loopback_allowed: None) -> Iterator[ScriptedReceiver]:
    with ScriptedReceiver(respond(200)) as receiver:
        endpoints.edit(scene.owner, scene.endpoint.pk, {"url": receiver.url})
        scene.endpoint.refresh_from_db()
        yield receiver


@pytest.fixture
def sender() -> Iterator[Sender]:
    with sending() as sender:
        yield sender


def first_secret(scene: Scene) -> str:
    return secrets.decrypt(EndpointSecret.objects.get(endpoint=scene.endpoint).ciphertext)


def posted(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender, body: bytes = b"{}"
) -> ReceivedRequest:
    """What the receiver gets of a delivery with this body."""
    factories.record(attempts.make(sender, factories.claim(scene.send(body=body))))
    return receiver.requests[-1]


def verified(request: ReceivedRequest, secret: str) -> bool:
    """By the public library, over the bytes that came."""
    return in_python([Case(request, secret)]) == [True]


def end_overlaps(scene: Scene) -> None:
    """As if the hours had passed."""
    old = EndpointSecret.objects.filter(endpoint=scene.endpoint, expires_at__isnull=False)
    old.update(expires_at=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("library", [in_python, in_javascript])
def test_before_during_and_after_a_rotation_a_public_library_verifies(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender, library: Verifier
) -> None:
    old = first_secret(scene)
    before = [posted(scene, receiver, sender, body) for body in BODIES]
    new = endpoints.rotate_secret(scene.owner, scene.endpoint.pk).secret
    during = [posted(scene, receiver, sender, body) for body in BODIES]
    end_overlaps(scene)
    after = [posted(scene, receiver, sender, body) for body in BODIES]

    sent = [*before, *during, *after]
    assert [request.body for request in sent] == BODIES * 3
    by_old = library([Case(request, old) for request in sent])
    by_new = library([Case(request, new) for request in sent])
    each = len(BODIES)
    assert by_old == [True] * each + [True] * each + [False] * each
    assert by_new == [False] * each + [True] * each + [True] * each


@pytest.mark.parametrize("library", [in_python, in_javascript])
def test_a_library_sees_that_a_byte_was_changed(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender, library: Verifier
) -> None:
    sent = posted(scene, receiver, sender, b'{"speed":1.10}')
    changed = ReceivedRequest(sent.head, b'{"speed":1.1}')

    assert library([Case(r, first_secret(scene)) for r in (sent, changed)]) == [True, False]


def test_the_newest_signature_comes_first_and_is_the_plain_one(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender
) -> None:
    new = endpoints.rotate_secret(scene.owner, scene.endpoint.pk).secret

    request = posted(scene, receiver, sender)

    alone = signing.signature_headers(
        message_id=request.headers["webhook-id"],
        timestamp=int(request.headers["webhook-timestamp"]),
        body=request.body,
        secrets=[new],
        event_type="test.event",
        attempt=1,
    )
    signatures = request.headers["webhook-signature"].split(" ")
    assert len(signatures) == 2
    assert signatures[0] == alone["webhook-signature"]
    assert request.headers["x-webhook-signature"] == alone["X-Webhook-Signature"]


def test_retries_that_wait_are_signed_by_the_secrets_of_their_time(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender
) -> None:
    waiting = [scene.send() for _ in range(3)]
    for delivery in waiting:
        factories.fail_with(delivery, [503])
    old = first_secret(scene)

    new = endpoints.rotate_secret(scene.owner, scene.endpoint.pk).secret
    for delivery in waiting:
        attempts.make(sender, factories.claim(delivery))

    assert [verified(r, old) and verified(r, new) for r in receiver.requests] == [True] * 3


@pytest.mark.parametrize("rotations", [1, 3])
def test_without_an_overlap_every_old_secret_ends_at_once(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender, rotations: int
) -> None:
    old = [first_secret(scene)]
    for _ in range(rotations - 1):
        old.append(endpoints.rotate_secret(scene.owner, scene.endpoint.pk).secret)

    new = endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=0).secret
    request = posted(scene, receiver, sender)

    assert verified(request, new)
    assert [verified(request, secret) for secret in old] == [False] * rotations


@pytest.mark.parametrize("hours", [1, 24, 168])
def test_the_old_secret_ends_when_it_was_said_to(scene: Scene, hours: int) -> None:
    before = database_now()

    rotated = endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=hours)

    old = EndpointSecret.objects.get(endpoint=scene.endpoint, expires_at__isnull=False)
    assert old.expires_at == rotated.previous_expires_at
    span = timedelta(hours=hours)
    assert before + span <= rotated.previous_expires_at <= database_now() + span


def test_a_second_rotation_does_not_cut_the_first_overlap_short(scene: Scene) -> None:
    first = endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=100)

    endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=1)

    oldest = EndpointSecret.objects.filter(endpoint=scene.endpoint).earliest("pk")
    assert oldest.expires_at == first.previous_expires_at


def test_no_more_than_five_sign_at_once(scene: Scene) -> None:
    for _ in range(4):
        endpoints.rotate_secret(scene.owner, scene.endpoint.pk)

    with pytest.raises(endpoints.Refused) as refusal:
        endpoints.rotate_secret(scene.owner, scene.endpoint.pk)
    assert refusal.value.code == "too_many_secrets"
    assert len(factories.claim(scene.send()).secret_ciphertexts) == 5
    endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=0)
    assert len(factories.claim(scene.send()).secret_ciphertexts) == 1


def test_a_rotation_is_audited_without_the_secret(scene: Scene) -> None:
    rotated = endpoints.rotate_secret(scene.owner, scene.endpoint.pk)

    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.after["overlapHours"]) == ("endpoint.rotate_secret", 24)
    assert "whsec_" not in str(entry.after) + repr(rotated)


@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_only_an_owner_rotates(scene: Scene, role: str) -> None:
    with pytest.raises(NotPermitted):
        endpoints.rotate_secret(scene.provisioned.actor(role), scene.endpoint.pk)


def test_nobody_rotates_another_organization_s(scene: Scene) -> None:
    with pytest.raises(Endpoint.DoesNotExist):
        endpoints.rotate_secret(new_scene("Another").owner, scene.endpoint.pk)


def test_a_retry_after_an_emergency_is_not_signed_with_what_leaked(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender
) -> None:
    delivery = scene.send()
    factories.fail_with(delivery, [503])
    leaked = first_secret(scene)
    endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=0)

    attempts.make(sender, factories.claim(delivery))

    assert not verified(receiver.requests[-1], leaked)
    assert Delivery.objects.get(pk=delivery.pk).attempts == 2


# --- headers of the owner's ---------------------------------------------------------------------


def test_headers_are_sent_with_each_attempt_byte_for_byte(
    scene: Scene, receiver: ScriptedReceiver, sender: Sender
) -> None:
    own = {"Authorization": "Bearer confidential", "X-Tenant": "Straße 🚀"}
    endpoints.edit(scene.owner, scene.endpoint.pk, {"headers": own})

    request = posted(scene, receiver, sender)

    assert b"\r\nAuthorization: Bearer confidential\r\n" in request.head
    assert "\r\nX-Tenant: Straße 🚀\r\n".encode() in request.head
    assert verified(request, first_secret(scene))
    endpoints.edit(scene.owner, scene.endpoint.pk, {"headers": dict.fromkeys(own)})
    assert b"confidential" not in posted(scene, receiver, sender).head
