"""The repository guards its own shape. Each failure names the line and says how to mend it."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import pytest
from django.conf import global_settings
from django.core.management import call_command, get_commands

ROOT = Path(__file__).parents[1]
# Lowest first: an app may import those before it. The demo and config stand above and use everything.
APPS = ("organizations", "webhooks", "commands", "demo")
RULES, FOUNDATIONS, MODELS, SERVICES, OUTER = range(5)
OUTER_NAMES = {"api", "console", "admin", "tasks", "management", "apps", "checks"}
# Parts of the admin that all apps share have names of their own.
OUTER_NAMES |= {"tenant_admin", "admin_actions"}
# What models build on: these know no model themselves.
FOUNDATION_NAMES = {"guards", "ids", "exact_json", "policies"}
LAYER_WORDS = ("rules", "the foundations of models", "models", "services", "the outer layer")


@dataclass(frozen=True)
class Import:
    """One imported name, and the line that imports it."""

    path: Path
    line: int
    target: str

    @property
    def module(self) -> tuple[str, ...]:
        return self.path.relative_to(ROOT).with_suffix("").parts

    @property
    def app(self) -> str:
        return self.module[0]

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.target}"


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def imports(path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (Import(path, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import absolute"
            for alias in node.names:
                yield Import(path, node.lineno, f"{node.module}.{alias.name}")


def layer_of(module: tuple[str, ...]) -> int | None:
    """Which layer of its app a module belongs to; None for the app itself."""
    name = module[1] if len(module) > 1 else ""
    named = {"": None, "rules": RULES, "models": MODELS}
    if name in named:
        return named[name]
    if name in FOUNDATION_NAMES:
        return FOUNDATIONS
    return OUTER if name in OUTER_NAMES else SERVICES


ALL = [one for path in sources(*APPS) for one in imports(path)]


def test_imports_between_apps_run_one_way() -> None:
    wrong = [
        f"{one}: {one.app} stands below {target} and may not know it."
        " Move what both need down, or send a signal that the upper one receives."
        for one in ALL
        if (target := one.target.split(".")[0]) in APPS and APPS.index(target) > APPS.index(one.app)
    ]

    assert not wrong, "\n".join(wrong)


def test_imports_within_an_app_run_from_the_outside_in() -> None:
    wrong = [
        f"{one}: {LAYER_WORDS[outer]} may not import {LAYER_WORDS[inner]}."
        f" Pass it in as an argument, or move it to {LAYER_WORDS[outer]}."
        for one in ALL
        if one.app != "demo" and one.target.split(".")[0] == one.app
        if (outer := layer_of(one.module)) is not None
        if (inner := layer_of(tuple(one.target.split(".")))) is not None
        if inner > outer
    ]

    assert not wrong, "\n".join(wrong)


def test_rules_import_only_the_standard_library_and_rules_of_their_app() -> None:
    wrong = [
        f"{one}: rules decide from values alone. Take what it gives as an argument."
        for one in ALL
        if one.module[1] == "rules"
        and one.target.split(".")[0] not in sys.stdlib_module_names
        and not one.target.startswith(f"{one.app}.rules")
    ]

    assert not wrong, "\n".join(wrong)


CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter"}


def test_rules_look_at_no_clock() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.attr}(): take it as an argument."
        for path in sources(*APPS)
        if "rules" in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in CLOCKS
    ]

    assert not wrong, "\n".join(wrong)


def test_only_two_modules_write_a_command_s_state() -> None:
    """Assignments of ``.state`` and ``update(state=…)`` of commands stand in two files: what people do, and
    what the engine and the clock do.
    """
    writes = re.compile(r"\.state = |update\(\s*state=|commands_command c? ?SET state")
    wrong = [
        f"{path.relative_to(ROOT)}:{number} writes a state: add a step to lifecycle.py or settling.py."
        for path in sources("commands")
        if path.name not in ("lifecycle.py", "settling.py")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if writes.search(line)
    ]

    assert not wrong, "\n".join(wrong)


def test_only_the_sender_speaks_http() -> None:
    speakers = {
        str(one.path.relative_to(ROOT))
        for one in ALL
        if one.target.split(".")[0] in ("requests", "urllib3", "http")
        and not one.target.startswith(("http.HTTPStatus", "http.server"))
        and one.app != "demo"
    }

    assert all(name.startswith("webhooks/engine/") for name in speakers), speakers


def test_nobody_imports_the_demo() -> None:
    wrong = [
        str(one)
        for path in sources(*APPS[:3], "config")
        for one in imports(path)
        if one.target.split(".")[0] == "demo"
    ]

    assert not wrong, "\n".join(wrong)


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        f"{path.relative_to(ROOT)} has no docstring: say in its first line what it is for."
        for path in sources(*APPS, "config", "tests")
        if (tree := ast.parse(path.read_text())).body
        and not ast.get_docstring(tree)
        and path.name not in ("apps.py", "__init__.py")
    ]

    assert not silent, "\n".join(silent)


def test_no_file_is_two_things() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {count} lines: past 400 it is two things, divide it."
        for path in sources(*APPS, "config", "tests")
        if (count := len(path.read_text().splitlines())) > 400
    ]

    assert not long, "\n".join(long)


# --- settings -----------------------------------------------------------------------------------

SETTINGS = ROOT / "config" / "settings.py"
# Settings that are read by packages: where, and by a name without which prefix.
READ_BY_PACKAGES = {
    "ROOT_URLCONF": ("django", "urls/resolvers.py", ""),
    "ACCOUNT_": ("allauth", "account/app_settings.py", "ACCOUNT_"),
    "REST_FRAMEWORK": ("rest_framework", "settings.py", ""),
    "SPECTACULAR_SETTINGS": ("drf_spectacular", "settings.py", ""),
    "CONTENT_SECURITY_POLICY": ("csp", "checks.py", ""),
    "Q_CLUSTER": ("django_q", "conf.py", ""),
}


def defined_settings() -> dict[str, int]:
    """The names that settings.py defines, and on which line."""
    found: dict[str, int] = {}
    for node in ast.parse(SETTINGS.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [t.id for t in targets if isinstance(t, ast.Name) and t.id.isupper()]
            found |= dict.fromkeys(names, node.lineno)
    return found


def read_by_a_package(name: str) -> bool:
    for start, (package, file, prefix) in READ_BY_PACKAGES.items():
        spec = util.find_spec(package) if name.startswith(start) else None
        if spec and spec.origin:
            text = (Path(spec.origin).parent / file).read_text()
            return re.search(rf"\b{name.removeprefix(prefix)}\b", text) is not None
    return False


def test_every_setting_is_read_by_somebody() -> None:
    code = (
        "\n".join(path.read_text() for path in sources(*APPS, "config") if path != SETTINGS)
        + (ROOT / "manage.py").read_text()
    )
    used_here = {
        node.id
        for node in ast.walk(ast.parse(SETTINGS.read_text()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    unread = [
        f"config/settings.py:{line} defines {name}, which nothing reads: remove it."
        for name, line in defined_settings().items()
        if not hasattr(global_settings, name)
        and not re.search(rf"\bsettings\.{name}\b", code)
        and name not in used_here
        and not read_by_a_package(name)
    ]

    assert not unread, "\n".join(unread)


def environment_variables() -> set[str]:
    """The names of the variables that settings.py reads."""
    readers = {"integer", "switch", "networks", "str", "list", "bool", "int"}
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(SETTINGS.read_text()))
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
        and (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        in readers
    }


def test_every_environment_variable_is_explained() -> None:
    guide = (ROOT / "docs" / "running.md").read_text()

    missing = [name for name in sorted(environment_variables()) if f"`{name}`" not in guide]

    assert len(environment_variables()) > 10
    assert not missing, f"docs/running.md does not explain {', '.join(missing)}"


# --- what people type ---------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "docs"])
def test_every_make_target_that_is_written_down_exists(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    pages = [ROOT / page] if page.endswith(".md") else sorted((ROOT / page).glob("*.md"))
    written = {
        (path.name, target)
        for path in pages
        for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", path.read_text(), re.MULTILINE)
    }

    missing = [f"{name} names `make {target}`" for name, target in written if target not in targets]

    assert not missing, f"{'; '.join(missing)}: the Makefile has {', '.join(sorted(targets))}"


def test_every_management_command_that_is_written_down_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "Procfile", *sorted((ROOT / "docs").glob("*.md"))]
    written = {
        (path.name, command)
        for path in pages
        for command in re.findall(r"manage\.py ([a-z_]+)", path.read_text())
    }

    missing = [f"{name}: manage.py {c}" for name, c in written if c not in get_commands()]

    assert not missing, "; ".join(missing)


def test_every_file_that_a_page_links_to_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    missing = [
        f"{path.relative_to(ROOT)} links to {link}, which does not exist"
        for path in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text())
        if not (path.parent / link).exists()
    ]

    assert not missing, "\n".join(missing)


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    output = io.StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=output)
    except SystemExit:
        pytest.fail(f"Run `manage.py makemigrations`:\n{output.getvalue()}")
