"""What the demo prints: the table, the figures, and which expectation failed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from demo.expectations import AttemptSeen, Expectation, Observation, PostSeen
from demo.report import figures, table, verdict
from demo.run import Result
from demo.scenarios import QUICK, SCENARIOS, Scenario

T0 = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = Scenario("accept-and-ack", "accept-and-ack", Expectation("acked", (200,), "acked"))
FLAKY = Scenario("flaky", "flaky", Expectation("acked", (503, 200), "acked"))
UNARMED = next(scenario for scenario in SCENARIOS if scenario.name == "unarmed")


def at(ms: float) -> datetime:
    return T0 + timedelta(milliseconds=ms)


def attempt(number: int, due_ms: float, outcome: int, late_ms: float) -> AttemptSeen:
    started = at(due_ms + late_ms)
    return AttemptSeen(number, at(due_ms), started, started, outcome)


def acked_after(scenario: Scenario, first_byte_ms: float) -> Result:
    """Dispatch sent at 0 ms and answered at 20 ms."""
    seen = Observation(
        "acked",
        "acked",
        None,
        (attempt(1, 0, 200, late_ms=7),),
        (PostSeen(at(first_byte_ms), "msg_1", 1, True),),
    )
    return Result(scenario, seen, at(0), at(20), None)


def refused() -> Result:
    seen = Observation("logged", "dispatch_refused", "dataset_unarmed", (), ())
    return Result(UNARMED, seen, at(0), at(20), None)


def retried(late_ms: float) -> Result:
    attempts = (attempt(1, 0, 503, 0), attempt(2, 5000, 200, late_ms))
    posts = (PostSeen(at(10), "msg_2", 1, True), PostSeen(at(5300), "msg_2", 2, True))
    seen = Observation("acked", "acked", None, attempts, posts)
    return Result(FLAKY, seen, at(0), at(20), None)


def test_the_table_shows_each_attempt_with_its_lateness() -> None:
    lines = table([retried(12), refused()]).splitlines()
    assert "503 (+0 ms), 200 (+12 ms)" in lines[2]
    assert "none: dataset_unarmed" in lines[3]
    assert all(line.endswith("ok") for line in lines[2:])


def test_the_quick_commands_share_one_row() -> None:
    lines = table([acked_after(scenario, 15) for scenario in QUICK[:3]]).splitlines()
    assert len(lines) == 3
    assert "3 quick commands" in lines[2]
    assert "3 x acked" in lines[2]
    assert "3 x 200 (to +7 ms)" in lines[2]


def test_the_first_byte_is_measured_from_the_dispatch_and_from_its_answer() -> None:
    sent, answered, retry_line = figures(
        [acked_after(ENDED, ms) for ms in (15, 25, 95)] + [refused()]
    ).splitlines()
    assert "median 25.0 ms, max 95.0 ms, 3 commands" in sent
    assert "median 5.0 ms, max 75.0 ms, 3 commands" in answered
    assert retry_line == "retries: none"


def test_retries_are_summed_up_by_the_latest_and_the_early_ones() -> None:
    on_time, early = figures([retried(30)]), figures([retried(30), retried(-2)])
    assert "1 retries: latest 30.0 ms after its time (at most 250), none early" in on_time
    assert "2 retries: latest 30.0 ms after its time (at most 250), 1 early" in early


def test_nothing_arrived_is_said_not_computed() -> None:
    assert "nothing arrived" in figures([refused()])


def test_the_verdict_names_the_command_and_the_expectation_that_failed() -> None:
    assert verdict([acked_after(ENDED, 15)]) == "All 1 commands ended as they must."
    assert verdict([acked_after(ENDED, 15), retried(300)]).splitlines() == [
        "These expectations failed:",
        "  flaky: attempt 2 started 300 ms late, more than 250 ms",
    ]
    assert "NOT AS EXPECTED" in table([retried(300)])
