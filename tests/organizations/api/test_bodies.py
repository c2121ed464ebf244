"""What a body must be before anything looks at its fields."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings

from commands.models import Experiment
from tests.factories import Scene
from tests.organizations.api.client import Api, content, problem


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "Not JSON"),
        ("", "Not JSON"),
        ('{"name": "a"} {"name": "b"}', "Not JSON"),
        ("{'name': 'a'}", "Not JSON"),
        ('{"name": NaN}', "NaN"),
        ('{"name": -Infinity}', "Infinity"),
        ('{"name": "a", "name": "b"}', "twice"),
        ('{"name": "\\ud800"}', "surrogate"),
        ('{"name": {"\\uDC00": 1}}', "surrogate"),
        (b'{"name": "\xed\xa0\x80"}', "UTF-8"),
        (b'{"name": "\xff"}', "UTF-8"),
        ('{"name": "a\tb"}', "Not JSON"),
        ('{"name": 1E9999999999999999999999}', "exponent"),
        ('{"name": ' + "[" * 65 + "]" * 65 + "}", "64 levels"),
        ("[" * 100_000, "64 levels"),
    ],
)
def test_what_cannot_be_kept_exactly_is_refused(
    scene: Scene, body: str | bytes, reason: str
) -> None:
    if body == "":
        body = " "  # an empty body is no body at all

    told = problem(Api.of(scene).send("experiments", body), 400, "malformed_json")

    assert reason in told["detail"]


def test_a_whole_surrogate_pair_is_a_character(scene: Scene) -> None:
    answer = Api.of(scene).send("experiments", '{"name": "\\ud83d\\ude80"}')

    assert content(answer)["name"] == "🚀"


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_only_json_is_taken(scene: Scene, content_type: str) -> None:
    answer = Api.of(scene).send("experiments", '{"name": "a"}', content_type)

    problem(answer, 415, "unsupported_media_type")


def test_a_charset_beside_the_media_type_is_fine(scene: Scene) -> None:
    answer = Api.of(scene).send("experiments", '{"name": "a"}', "application/json; charset=utf-8")

    assert answer.status_code == 201


@pytest.mark.parametrize("body", ["[]", "null", "1", '"name"', "true"])
def test_a_body_is_an_object(scene: Scene, body: str) -> None:
    told = problem(Api.of(scene).send("experiments", body), 400, "validation_error")

    assert list(told["errors"]) == ["body"]


def of_size(size: int) -> bytes:
    """A valid body of so many bytes."""
    return b'{"name": "a"}'.ljust(size, b" ")


def test_a_body_of_exactly_the_limit_is_taken(scene: Scene) -> None:
    answer = Api.of(scene).send("experiments", of_size(settings.MAX_BODY_BYTES))

    assert answer.status_code == 201


def test_a_byte_over_the_limit_is_refused_and_nothing_is_made(scene: Scene) -> None:
    before = Experiment.objects.count()

    answer = Api.of(scene).send("experiments", of_size(settings.MAX_BODY_BYTES + 1))

    problem(answer, 413, "body_too_large")
    assert Experiment.objects.count() == before


def test_the_limit_counts_bytes_not_characters(scene: Scene) -> None:
    text = "é" * (settings.MAX_BODY_BYTES // 2)  # under the limit in characters

    answer = Api.of(scene).send("experiments", f'{{"name": "{text}"}}')

    problem(answer, 413, "body_too_large")


def chunked(scene: Scene, body: bytes, *, terminated: bool = True) -> Any:
    """Send a body without a declared length, as a server hands on a chunked one."""
    environ: dict[str, Any] = {
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": terminated,
    }
    return Api.of(scene).send("experiments", b"", **environ)


def test_a_chunked_body_is_read(scene: Scene) -> None:
    answer = chunked(scene, b'{"name": "in pieces"}')

    assert answer.status_code == 201
    assert content(answer)["name"] == "in pieces"


def test_a_chunked_body_over_the_limit_is_refused(scene: Scene) -> None:
    problem(chunked(scene, of_size(settings.MAX_BODY_BYTES + 1)), 413, "body_too_large")


def test_a_chunked_body_whose_end_the_server_does_not_mark_needs_a_length(scene: Scene) -> None:
    problem(chunked(scene, b"{}", terminated=False), 411, "length_required")


def test_a_stranger_s_body_is_not_even_read(db: None) -> None:
    answer = Api().send("experiments", of_size(settings.MAX_BODY_BYTES + 1))

    problem(answer, 401, "missing_api_key")


def test_numbers_come_back_with_every_digit(scene: Scene) -> None:
    parameters = (
        '{"a":1.10,"b":123456789012345678901234567890,"c":-0,"d":1E+400,"e":0.30000000000000004,'
        '"f":{"z":[1.0,10.00]},"g":"\\u0000</script>"}'
    )
    body = (
        f'{{"datasetId":"{scene.dataset.pk}","clientToken":"exact","name":"n",'
        f'"parameters":{parameters}}}'
    )

    answer = Api.of(scene).send("commands/issue", body)

    assert answer.status_code == 201
    assert f'"parameters":{parameters}' in answer.content.decode()
    command_id = content(answer)["id"]
    assert (
        f'"parameters":{parameters}' in Api.of(scene).get(f"commands/{command_id}").content.decode()
    )
    assert content(answer)["parameters"]["a"] == Decimal("1.10")


def test_an_integer_of_5000_digits_keeps_each(scene: Scene) -> None:
    digits = "9" * 5000
    body = (
        f'{{"datasetId":"{scene.dataset.pk}","clientToken":"long","name":"n",'
        f'"parameters":{{"n":{digits}}}}}'
    )

    answer = Api.of(scene).send("commands/issue", body)

    assert f'{{"n":{digits}}}' in answer.content.decode()
