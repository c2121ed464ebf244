"""``make chaos``: kill and cut everything under load, and end with a table whose zeros are zeros.

It needs nothing but this checkout: PostgreSQL, receivers, network and workers are its own and end with
it. Nothing listens beyond loopback. As root PostgreSQL's data gets a small disk of its own, which is then
filled; for anybody else that one fault is reported as not run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.chaos import stage as staging
from tests.chaos.stage import Stage

CUT_S = 60.0
QUICK_CUT_S = 20.0


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with staging.raised() as stage:
        _prepare(stage)
        return _play(stage, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--kills", type=int, help="processes to kill (default 18; quick 4)")
    parser.add_argument("--quick", action="store_true", help="a minute or two instead of ten")
    parser.add_argument("--only", default="", help="just the faults with this in their name")
    parser.add_argument("--rate", type=float, default=20.0, help="deliveries a second (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="decides the order (default 1)")
    parser.add_argument("--log", type=Path, help="keep the workers' log here")
    options = parser.parse_args()
    if options.kills is None:
        options.kills = 4 if options.quick else 18
    return options


def _prepare(stage: Stage) -> None:
    """Point Django at the stage's database, before anything reads the settings."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": stage.database.url,
        "CONSOLE_DATA_DIR": str(stage.folder / "console"),
        "ENDPOINT_ALLOW_HTTP": "1",
        "ENDPOINT_ALLOWED_NETWORKS": "127.0.0.0/8",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    staging.tune(stage.database)


def _play(stage: Stage, options: argparse.Namespace) -> int:
    from tests.chaos import report, scenario

    plan = scenario.Plan(
        kills=options.kills,
        cut_s=QUICK_CUT_S if options.quick else CUT_S,
        per_second=options.rate,
        seed=options.seed,
        only=options.only,
        quick=options.quick,
    )
    began = time.monotonic()

    def progress(text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        print(f"{minutes:02}:{seconds:02}  {text}", flush=True)

    try:
        result = scenario.play(stage, plan, progress)
    finally:
        if options.log and (stage.folder / "cluster.log").exists():
            shutil.copy(stage.folder / "cluster.log", options.log)
    print(f"\n{report.table(result)}")
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
