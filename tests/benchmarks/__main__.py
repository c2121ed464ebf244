"""``python -m tests.benchmarks``: measure the engine, print a table, keep the figures as JSON.

``--pages`` measures the console's pages instead, and has options of its own.

Exit code 1: a promise was broken (an attempt made twice or early, a delivery missing). An aim that is
missed on a busy machine is no failure: it says so in the table.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Never

from config.database import DatabaseUnavailable, data_dir_from_environment
from config.processes import adopt_orphans, kill_descendants
from tests.benchmarks import machine, pages
from tests.benchmarks.figures import BenchmarkFailed, Figure
from tests.benchmarks.measures import MEASURES
from tests.benchmarks.progress import Progress
from tests.benchmarks.report import Report
from tests.benchmarks.run import FULL, QUICK, Run, Sizes
from tests.benchmarks.stage import Stage

INTERRUPTED = 130
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    for number in STOPPING_SIGNALS:
        signal.signal(number, _stop)
    try:
        if arguments[:1] == ["--pages"]:
            return pages.main(arguments[1:])
        return _engine(arguments)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except (BenchmarkFailed, DatabaseUnavailable) as failure:
        print(failure, file=sys.stderr)
        return 1


def _engine(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    report = _read(options.read) if options.read else _measured(options)
    print(report.as_table())
    if options.markdown:
        report.write_into(options.markdown)
    for broken in report.broken_promises:
        print(f"A promise was broken: {broken}", file=sys.stderr)
    return 1 if report.broken_promises else 0


def _stop(*_: object) -> Never:
    """Once: what follows is cleaning up, and a second Ctrl-C must not interrupt that."""
    for number in STOPPING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes: a look, not a figure")
    size.add_argument("--full", action="store_true", help="also with 1,000,000 recorded")
    parser.add_argument("--only", type=_measures, help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--json", type=Path, help="where to write it (CONSOLE_DATA_DIR)")
    parser.add_argument("--markdown", type=Path, help="a page whose figures to replace")
    parser.add_argument("--read", type=Path, help="measure nothing: take the figures of this JSON")
    return parser


def _measures(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in MEASURES]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(MEASURES)}")
    return names


def _read(path: Path) -> Report:
    return Report.from_json(path.read_text())


def _measured(options: argparse.Namespace) -> Report:
    # Before the environment becomes that of the throw-away console.
    path: Path = options.json or data_dir_from_environment() / "benchmarks.json"
    sizes = QUICK if options.quick else FULL if options.full else Sizes()
    adopt_orphans()
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(kill_descendants)
        report = _run(sizes, options.only or list(MEASURES))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.as_json())
    print(f"The figures are in {path}", file=sys.stderr)
    return report


def _run(sizes: Sizes, names: list[str]) -> Report:
    progress = Progress()
    progress.show("starting PostgreSQL, the receiver and an organization")
    with Stage.set() as stage, contextlib.ExitStack() as keeping:
        facts = machine.facts(stage.folder)
        run = Run(stage, sizes, progress, keeping)
        figures: dict[str, list[Figure]] = {}
        for name, measure in MEASURES.items():
            if name in names:
                progress.note(name)
                figures[name] = measure(run)
        progress.clear()
    return Report(_command(), datetime.now(UTC).isoformat(" ", "minutes"), facts, figures)


def _command() -> str:
    return shlex.join(["python", "-m", "tests.benchmarks", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
