"""The request as it was sent: readable, exact, and of no use to a forger."""

from __future__ import annotations

import shlex
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organizations import exact_json
from tests.factories import Scene
from tests.visitors import Visitor
from webhooks.console.as_sent import SHOWN_BYTES, curl, pretty, request_of

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_pretty_text_is_the_same_value_with_the_same_digits(value: object) -> None:
    text = exact_json.dumps(value)
    assert exact_json.dumps(exact_json.loads(pretty(text))) == text


def test_tokens_stay_as_they_were_written() -> None:
    text = '{"a":1.10,"b":[1E400,-0],"c":{},"d":[],"e":"x,y:{\\"[\\\\"}'
    shown = pretty(text)
    assert shown.splitlines()[1:4] == ['  "a": 1.10,', '  "b": [', "    1E400,"]
    assert '"c": {},' in shown
    assert '"e": "x,y:{\\"[\\\\"' in shown


def test_curl_is_one_shell_command_with_the_exact_body() -> None:
    body = '{"note":"it\'s $HOME `id` \\n é"}'
    words = shlex.split(curl("https://r.example/a?b=c&d", [("webhook-id", "msg_1")], body))
    assert words[:4] == ["curl", "-X", "POST", "https://r.example/a?b=c&d"]
    assert words[-2:] == ["--data-binary", body]


@pytest.mark.django_db
def test_the_body_is_the_frozen_one_and_no_signature_is_shown(scene: Scene) -> None:
    delivery = scene.dispatched(speed=Decimal("1.10")).delivery
    assert delivery
    delivery.refresh_from_db()
    sent = request_of(delivery)
    assert sent.body.encode() == bytes(delivery.event.body)
    assert '"speed": 1.10' in sent.pretty
    assert sent.size == len(sent.body.encode())
    assert "signature" not in sent.curl.lower()
    assert dict(sent.headers)["webhook-signature"] == "(not shown)"


@pytest.mark.django_db
def test_headers_of_the_owner_are_named_without_their_values(scene: Scene) -> None:
    endpoint = scene.another_endpoint("event", headers={"X-Tenant-Key": "very secret"})
    sent = request_of(scene.send(endpoint))
    assert dict(sent.headers)["X-Tenant-Key"] == "(not shown)"
    assert "very secret" not in repr(sent)
    assert "X-Tenant-Key" not in sent.curl


@pytest.mark.django_db
def test_of_a_large_body_the_start_is_shown_and_nothing_copied(scene: Scene) -> None:
    body = b'{"note":"%s"}' % (b"x" * SHOWN_BYTES)
    sent = request_of(scene.send(body=body))
    assert (sent.whole, sent.size) == (False, len(body))
    assert len(sent.pretty) < SHOWN_BYTES + 100
    assert (sent.body, sent.curl) == ("", "")


@pytest.mark.django_db
@pytest.mark.usefixtures("plain_static")
def test_no_secret_is_on_the_page(scene: Scene) -> None:
    command = scene.delivered()
    shown = Visitor(scene.owner).get(f"/commands/{command.pk}/").html
    assert "whsec_" not in shown
    assert "v1," not in shown
