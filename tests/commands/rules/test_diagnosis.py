"""The diagnosis of every shape that a command can have: its code, and words that say what matters."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.rules import diagnosis
from commands.rules.diagnosis import AttemptFacts, CommandFacts, Diagnosis
from commands.rules.states import State

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
CODES = {
    "never_dispatched",
    "dispatch_refused",
    "retrying",
    "receiver_errors",
    "receiver_refused",
    "receiver_redirected",
    "unreachable",
    "receiver_too_slow",
    "receiver_unstable",
    "awaiting_ack",
    "not_acknowledged",
    "delivered_too_late_to_ack",
    "endpoint_disabled",
    "acked",
    "nacked",
    "retracted",
}

# In which an error arises where a test does not say ("timeout connect").
PHASES = {"dns": "name", "blocked_address": "name", "connection_refused": "connect", "tls": "tls"}


def attempts(*ends: int | str, location: str = "") -> list[AttemptFacts]:
    """Attempts in their order: a number is a status, a word an error, "" is on the wire."""
    return [attempt(number, end, location) for number, end in enumerate(ends, start=1)]


def attempt(number: int, end: int | str, location: str = "") -> AttemptFacts:
    if isinstance(end, int):
        return AttemptFacts(number, "retry", status_code=end, location=location)
    if end in ("", "lost"):
        return AttemptFacts(number, end)
    kind, _, phase = end.partition(" ")
    phase = phase or PHASES.get(kind, "headers")
    return AttemptFacts(number, "retry", phase=phase, error_kind=kind, error=f"The {end} happened.")


def diagnose(command: CommandFacts, *ends: int | str, location: str = "") -> Diagnosis:
    return diagnosis.diagnose(command, attempts(*ends, location=location))


def failed(*ends: int | str, location: str = "") -> Diagnosis:
    return diagnose(
        CommandFacts(State.FAILED, failure_reason="attempts_exhausted", attempts_planned=5),
        *ends,
        location=location,
    )


# --- not sent -----------------------------------------------------------------------------------


def test_never_dispatched() -> None:
    found = diagnose(CommandFacts(State.LOGGED))

    assert found.code == "never_dispatched"
    assert "nothing was sent" in found.summary


@pytest.mark.parametrize(
    ("reason", "cause", "cure"),
    [
        ("dataset_unarmed", "not armed", "Arm the dataset"),
        ("no_endpoint", "no endpoint", "Register an endpoint"),
        ("endpoint_disabled", "disabled", "enables it"),
    ],
)
def test_dispatch_refused(reason: str, cause: str, cure: str) -> None:
    found = diagnose(CommandFacts(State.LOGGED, dispatch_refusal=reason))

    assert found.code == "dispatch_refused"
    assert cause in found.summary
    assert cure in found.next_step


# --- under way ----------------------------------------------------------------------------------


def queued(*ends: int | str, in_flight: bool = False) -> Diagnosis:
    command = CommandFacts(
        State.QUEUED,
        next_attempt_at=None if in_flight else NOON,
        attempt_in_flight=in_flight,
        attempts_planned=5,
    )
    return diagnose(command, *ends)


def test_the_first_attempt_is_waited_for() -> None:
    found = queued()

    assert found.code == "retrying"
    assert found.summary == "Waiting for attempt 1 of 5, due at 2026-01-31 12:00:00 UTC."


def test_a_retry_says_when_it_comes_and_what_the_last_answer_was() -> None:
    found = queued(500, 503)

    assert "attempt 3 of 5, due at 2026-01-31 12:00:00 UTC." in found.summary
    assert "answered 503" in found.summary


def test_times_are_told_in_utc_or_as_the_caller_words_them() -> None:
    noon = NOON.astimezone(timezone(timedelta(hours=2)))
    command = CommandFacts(State.QUEUED, next_attempt_at=noon, attempts_planned=5)

    assert "12:00:00 UTC" in diagnose(command).summary
    assert ", due at noon." in diagnose(replace(command, worded=lambda at: "noon")).summary


def test_a_retry_after_an_error_says_which() -> None:
    assert "The dns happened." in queued("dns").summary


def test_a_retry_after_a_lost_attempt_says_that_nobody_knows() -> None:
    assert "no outcome is known" in queued("lost").summary


def test_an_attempt_on_the_wire_is_said_to_be() -> None:
    found = queued(503, "", in_flight=True)

    assert found.code == "retrying"
    assert "On the wire: attempt 2 of 5" in found.summary
    assert "answered 503" in found.summary


# --- failed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [[500] * 5, [429] * 5, [500, 503, 429, 599, 502]])
def test_receiver_errors(ends: list[int]) -> None:
    found = failed(*ends)

    assert found.code == "receiver_errors"
    assert "all 5 attempts" in found.summary
    assert all(str(status) in found.summary for status in ends)
    assert "receiver's side" in found.next_step


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422, 499])
@pytest.mark.parametrize("before", [[], [503], ["timeout", "dns"]])
def test_receiver_refused(status: int, before: list[int | str]) -> None:
    found = failed(*before, status)

    assert found.code == "receiver_refused"
    assert f"refused it with {status}" in found.summary
    assert "we stopped" in found.summary
    assert "deliberate" in found.next_step


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_receiver_redirected(status: int) -> None:
    found = failed(503, status, location="https://www.example.com/hook")

    assert found.code == "receiver_redirected"
    assert "https://www.example.com/hook" in found.summary
    assert str(status) in found.summary
    assert "final URL" in found.next_step


def test_a_redirect_to_nowhere_is_told_without_a_place() -> None:
    assert "redirected us (304)" in failed(304).summary


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("dns", "does not resolve"),
        ("tls", "certificate"),
        ("connection_refused", "nothing accepts the connection"),
        ("connection_reset connect", "closes the connection"),
        ("protocol", "not HTTP"),
    ],
)
def test_unreachable(error: str, words: str) -> None:
    found = failed(*[error] * 5)

    assert found.code == "unreachable"
    assert words in found.summary
    assert "URL and certificate" in found.next_step


def test_unreachable_in_more_than_one_way_names_each() -> None:
    found = failed("dns", "tls", "connection_refused", "dns", "dns")

    assert found.code == "unreachable"
    assert "does not resolve" in found.summary
    assert "TLS" in found.summary


def test_a_request_that_was_sent_before_the_connection_broke_may_have_arrived() -> None:
    found = failed("connection_refused", *["connection_reset"] * 4)

    assert found.code == "unreachable"
    assert "may have processed" in found.summary
    assert "receiver's log before you reissue" in found.next_step


def test_a_blocked_address_is_unreachable_and_says_so() -> None:
    found = failed("blocked_address")

    assert found.code == "unreachable"
    assert "not one that webhooks may go to" in found.summary
    assert "URL" in found.next_step


def test_a_receiver_that_does_not_let_us_connect_was_sent_nothing() -> None:
    found = failed(*["timeout connect"] * 5)

    assert found.code == "receiver_too_slow"
    assert "Nothing was sent" in found.summary
    assert "firewall" in found.next_step


def test_receiver_too_slow() -> None:
    found = failed(*["timeout"] * 5)

    assert found.code == "receiver_too_slow"
    assert "10 s" in found.summary
    assert "may have processed" in found.summary


def test_receiver_unstable_says_which_and_how_often() -> None:
    found = failed(500, "timeout", "dns", 503, "timeout")

    assert found.code == "receiver_unstable"
    assert "2 answered with an error" in found.summary
    assert "2 did not answer within 10 s" in found.summary
    assert "1 could not be reached" in found.summary


def test_lost_attempts_say_nothing_about_the_receiver() -> None:
    assert failed(500, "lost", 500, "lost", 503).code == "receiver_errors"
    assert failed("timeout", "lost", "timeout", "timeout", "lost").code == "receiver_too_slow"


def test_attempts_that_were_all_lost_are_said_to_be() -> None:
    found = failed(*["lost"] * 5)

    assert found.code == "receiver_unstable"
    assert "lost" in found.summary


@pytest.mark.parametrize(
    ("ends", "after"),
    [([], "delivered."), ([503], "after 1 attempt."), ([503, 500], "2 attempts.")],
)
def test_endpoint_disabled(ends: list[int], after: str) -> None:
    found = diagnose(CommandFacts(State.FAILED, failure_reason="endpoint_disabled"), *ends)

    assert found.code == "endpoint_disabled"
    assert found.summary.endswith(after)
    assert "reissue" in found.next_step


# --- delivered ----------------------------------------------------------------------------------


def test_awaiting_ack_names_the_deadline() -> None:
    found = diagnose(CommandFacts(State.DELIVERED, ack_deadline=NOON), 200)

    assert found.code == "awaiting_ack"
    assert "until 2026-01-31 12:00:00 UTC" in found.summary


def test_not_acknowledged_warns_that_the_vehicle_may_have_acted() -> None:
    command = CommandFacts(
        State.TIMED_OUT, delivered_at=NOON, ack_deadline=NOON + timedelta(minutes=5)
    )

    found = diagnose(command, 200)

    assert found.code == "not_acknowledged"
    assert "nobody knows" in found.summary
    assert "before you reissue" in found.next_step


@pytest.mark.parametrize("late", [timedelta(0), timedelta(minutes=5)])
def test_delivered_too_late_to_ack(late: timedelta) -> None:
    command = CommandFacts(State.TIMED_OUT, delivered_at=NOON + late, ack_deadline=NOON)

    found = diagnose(command, 503, 200)

    assert found.code == "delivered_too_late_to_ack"
    assert "after its deadline" in found.summary


@pytest.mark.parametrize("state", [State.ACKED, State.NACKED, State.RETRACTED])
def test_what_is_settled_is_named_by_its_state(state: State) -> None:
    for ends in ([], [200], [503, 200]):
        assert diagnose(CommandFacts(state), *ends).code == state.value


def test_a_retraction_reminds_of_what_it_cannot_recall() -> None:
    assert "cannot be recalled" in diagnose(CommandFacts(State.RETRACTED), "").next_step


# --- all of it ----------------------------------------------------------------------------------


def test_no_code_exists_outside_the_table() -> None:
    """Every code that the source can answer with is tested here, and every one in the table is there."""
    source = Path(diagnosis.__file__).read_text()

    built = set(re.findall(r'Diagnosis\(\s*"(\w+)"', source))

    assert built == CODES


ENDS = st.lists(
    st.one_of(
        st.integers(100, 999),
        st.sampled_from(["", "lost", "timeout", *diagnosis.UNREACHABLE_WORDS]),
    ),
    max_size=13,
)


@given(
    state=st.sampled_from(list(State)),
    refusal=st.sampled_from(["", *diagnosis.REFUSALS]),
    reason=st.sampled_from(["", "refused", "attempts_exhausted", "endpoint_disabled"]),
    times=st.tuples(*[st.none() | st.just(NOON)] * 3),
    in_flight=st.booleans(),
    ends=ENDS,
)
def test_whatever_the_facts_there_is_a_diagnosis_in_whole_sentences(
    state: State,
    refusal: str,
    reason: str,
    times: tuple[datetime | None, datetime | None, datetime | None],
    in_flight: bool,
    ends: list[int | str],
) -> None:
    found = diagnose(CommandFacts(state, refusal, reason, *times, in_flight, 5), *ends)

    assert found.code in CODES
    for sentence in (found.summary, found.next_step):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert not re.search(r"None|\(\)|  |\.\.|: \.", sentence)
