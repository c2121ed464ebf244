"""The commands of the demo, one for each behaviour that ends within a minute, and their ends.

Under the policy `command` the attempts come 0, 5 and 25 s after the one before (then 125 and 625),
so `flaky` is delivered by its third after about 30 s; the shortest ack deadline is 30 s too.
"""

from __future__ import annotations

from dataclasses import dataclass

from demo.expectations import Expectation

# Enough for a median that one slow dispatch does not move.
QUICK_COMMANDS = 20


@dataclass(frozen=True)
class Scenario:
    """`dataset` is the demo dataset whose endpoint shows the behaviour."""

    name: str
    dataset: str
    expected: Expectation
    ack_timeout_s: int | None = None
    retract_while_waiting: bool = False


ACKED = Expectation("acked", (200,), "acked")

# `broken` is first: it must be retracted in the 5 s between its first attempt and its second.
SCENARIOS = (
    Scenario(
        "broken, retracted",
        "broken",
        Expectation("retracted", (500,), "retracted"),
        retract_while_waiting=True,
    ),
    Scenario("accept-and-ack", "accept-and-ack", ACKED),
    Scenario(
        "accept-and-silence",
        "accept-and-silence",
        Expectation("timed_out", (200,), "not_acknowledged"),
        ack_timeout_s=30,
    ),
    Scenario("accept-and-reject", "accept-and-reject", Expectation("nacked", (200,), "nacked")),
    Scenario("flaky", "flaky", Expectation("acked", (503, 503, 200), "acked")),
    Scenario("refuse", "refuse", Expectation("failed", (400,), "receiver_refused")),
    Scenario("moved", "moved", Expectation("failed", (308,), "receiver_redirected")),
    Scenario(
        "unarmed",
        "unarmed",
        Expectation("logged", (), "dispatch_refused", refusal="dataset_unarmed"),
    ),
)

QUICK = tuple(
    Scenario(f"quick {number}", "accept-and-ack", ACKED) for number in range(1, QUICK_COMMANDS + 1)
)
WARM_UP = Scenario("warm-up", "accept-and-ack", ACKED)
