"""`make demo`: one command for each behaviour of a receiver, from dispatch to its end.

Exits 0 only if every command ended as the delivery contract says, else 1 and what failed, in words.
"""

from __future__ import annotations

import signal
import sys

from demo.console import Console, ReceiverLog, Refused, Unreachable
from demo.environment import EnvironmentProblem, read_environment
from demo.launcher import CannotStart, Running, running_console
from demo.progress import Progress
from demo.report import figures, table, verdict
from demo.run import Result, Run, Unready
from demo.scenarios import SCENARIOS
from demo.seeded import DemoOrganization, NotSeeded

# A demo adds one failed attempt to an endpoint that refuses, and 20 in a row disable it.
FAILURES_TO_SPARE = 2


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    progress = Progress()
    try:
        with running_console(read_environment(), progress) as running:
            return demonstrate(running, progress)
    except (EnvironmentProblem, CannotStart, Unready, Unreachable, Refused, NotSeeded) as problem:
        progress.note(f"The demo could not run: {problem}")
        return 1
    except KeyboardInterrupt:
        progress.note("Stopped.")
        return 130


def demonstrate(running: Running, progress: Progress) -> int:
    organization = running.organization
    owner = Console(running.console_url, organization.api_keys["owner"])
    revive_endpoints(owner, organization, progress)
    run = Run(
        Console(running.console_url, organization.api_keys["operator"]),
        ReceiverLog(running.receiver_url),
        organization.datasets,
        progress,
    )
    run.warm_up()
    results = run.everything()
    show(results, progress)
    failed = any(result.failures for result in results)
    if failed and running.log:
        progress.note(f"\nThe console's last lines:\n{running.log_tail()}")
    return 1 if failed else 0


def revive_endpoints(owner: Console, organization: DemoOrganization, progress: Progress) -> None:
    """Give every endpoint of the demo room to fail in: earlier demos may have used it up.

    Only an owner may; saving an enabled endpoint or enabling a disabled one starts its counters
    from zero.
    """
    for name in {scenario.dataset for scenario in SCENARIOS} & organization.endpoints.keys():
        endpoint = owner.endpoint(organization.endpoints[name].id)
        failures_left = endpoint["health"]["failuresUntilDisabled"]
        if not endpoint["enabled"]:
            progress.note(f"The endpoint {name} was disabled: enabling it again.")
            owner.enable_endpoint(endpoint["id"])
        elif failures_left is not None and failures_left <= FAILURES_TO_SPARE:
            owner.save_endpoint(endpoint["id"], endpoint["name"])


def show(results: list[Result], progress: Progress) -> None:
    progress.note(f"\n{table(results)}\n\n{figures(results)}\n\n{verdict(results)}")


if __name__ == "__main__":
    sys.exit(main())
