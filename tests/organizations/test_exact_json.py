"""JSON that comes out as it went in, and is refused with a reason where it could not."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organizations import exact_json
from organizations.exact_json import MAX_DEPTH, NotExactJson


@pytest.mark.parametrize(
    "text",
    [
        "1.10",
        "1.0",
        "0.1",
        "-0.0",
        "1E+400",
        "1E-400",
        "12345678901234567890123456789012345678901234567890",
        "9" * 10_000,
        "3." + "1" * 10_000,
        '{"b":1,"a":2}',
        '[true,false,null,"",[],{}]',
        '"café 🛰 \u2028 </script>"',
        '"\\u0000\\u001f\\"\\\\"',
    ],
)
def test_a_text_in_canonical_form_comes_back_to_the_letter(text: str) -> None:
    assert exact_json.dumps(exact_json.loads(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (' { "a" : [ 1 , 2 ] } ', '{"a":[1,2]}'),
        ('"\\u00e9\\ud83d\\ude00"', '"é😀"'),
        ("1e2", "1E+2"),
        ("1.50e-7", "1.50E-7"),
        ('"\\/"', '"/"'),
    ],
)
def test_what_means_the_same_has_one_text(text: str, canonical: str) -> None:
    assert exact_json.dumps(exact_json.loads(text)) == canonical
    assert exact_json.dumps(exact_json.loads(canonical)) == canonical


def test_bytes_are_read_as_utf_8() -> None:
    assert exact_json.loads('{"é":1}'.encode()) == {"é": 1}


NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_is_kept_reads_back_as_itself(value: Any) -> None:
    text = exact_json.dumps(value)

    again = exact_json.loads(text)

    assert again == value
    assert exact_json.dumps(again) == text


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_other_parsers_read_the_same(value: dict[str, Any]) -> None:
    parsed = json.loads(exact_json.dumps(value))

    assert parsed.keys() == value.keys()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ('{"a":-Infinity}', "-Infinity is not JSON"),
        ('{"a":1,"a":2}', "A key occurs twice"),
        ('{"x":{"a":1,"b":2,"a":1}}', "A key occurs twice"),
        ("", "Not JSON"),
        ("{", "Not JSON"),
        ("{'a':1}", "Not JSON"),
        ("[1,]", "Not JSON"),
        ("1 2", "Not JSON"),
        ("01", "Not JSON"),
        ("1e99999999999999999999", "exponent"),
        (b'{"a":"\xff"}', "not UTF-8"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_reason(text: str | bytes, reason: str) -> None:
    with pytest.raises(NotExactJson, match=reason):
        exact_json.loads(text)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_refused_past_its_limit(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]

    def nested(levels: int) -> str:
        return opening * levels + "0" + closing * levels

    assert exact_json.loads(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 1000, 100_000):
        with pytest.raises(NotExactJson, match="deeper than 64"):
            exact_json.loads(nested(levels))


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff":1}', '["ok","\\ud83d"]'])
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(NotExactJson, match="surrogate"):
        exact_json.dumps(exact_json.loads(text))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_is_no_number_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        exact_json.dumps({"x": value})


def test_with_sorted_keys_the_order_of_an_object_means_nothing() -> None:
    one, other = (
        '{"a":{"x":1,"y":[{"c":1,"b":2}]},"b":1.10}',
        '{"b":1.10,"a":{"y":[{"b":2,"c":1}],"x":1}}',
    )

    texts = {exact_json.dumps(exact_json.loads(text), sort_keys=True) for text in (one, other)}

    assert len(texts) == 1


def test_a_text_stands_in_a_larger_value_to_the_letter() -> None:
    text = '{"b":1.10,"a":"é"}'
    assert exact_json.dumps({"x": [exact_json.verbatim(text), 1]}) == f'{{"x":[{text},1]}}'
