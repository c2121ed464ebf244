"""The figures as a table, as JSON, and as the section of a page that keeps the last ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.figures import Figure, shown

BEGIN = "<!-- figures: written by the benchmarks -->"
END = "<!-- end of the figures -->"


@dataclass(frozen=True)
class Report:
    """What one run found, on which machine, by which command."""

    command: str
    ended_at: str
    machine: Mapping[str, str]
    figures: Mapping[str, Sequence[Figure]]

    @property
    def broken_promises(self) -> list[str]:
        return [
            f"{measure}: {figure.name}: {shown(figure.value)}"
            for measure, figures in self.figures.items()
            for figure in figures
            if figure.promise and not figure.met
        ]

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        facts = json.loads(text)
        figures = {
            measure: [Figure(**figure) for figure in found]
            for measure, found in facts.pop("figures").items()
        }
        return cls(figures=figures, **facts)

    def as_table(self) -> str:
        names = max(len(f.name) for found in self.figures.values() for f in found)
        lines = [f"{name:<12} {fact}" for name, fact in self.machine.items()]
        for measure, figures in self.figures.items():
            lines += ["", measure]
            lines += [
                f"  {f.name:<{names}}  {shown(f.value):>9} {f.unit:<3} {f.aim:>9}  {_word(f)}".rstrip()
                for f in figures
            ]
        return "\n".join(lines)

    def as_markdown(self) -> str:
        lines = [f"`{self.command}`, {self.ended_at}", ""]
        lines += [f"- {name}: {fact}" for name, fact in self.machine.items()]
        for measure, figures in self.figures.items():
            lines += ["", f"### {measure.capitalize()}", "", "| figure | measured | aim | |"]
            lines += ["|---|---:|---:|---|"]
            lines += [
                f"| {f.name} | {shown(f.value)} {f.unit} | {f.aim} | {_word(f)} |" for f in figures
            ]
        return "\n".join(lines)

    def write_into(self, page: Path) -> None:
        """Replace what stands between the page's two marks."""
        text = page.read_text()
        before, begin, rest = text.partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise ValueError(f"{page} lacks the marks {BEGIN} and {END}.")
        page.write_text(f"{before}{BEGIN}\n\n{self.as_markdown()}\n\n{END}{after}")


def _word(figure: Figure) -> str:
    if figure.met is None:
        return ""
    return "met" if figure.met else "missed"
