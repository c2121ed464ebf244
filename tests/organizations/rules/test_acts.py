"""Every act that the code writes into the audit trail has words, and what it is done to a place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.contrib import admin

from organizations.console.audit import KINDS, TABS
from organizations.rules.acts import ACTS, GROUPS, TARGET_TYPES, TRAFFIC, is_traffic, words_of
from organizations.tenant_admin import TenantAdmin

ROOT = Path(__file__).parents[3]
ACT = re.compile(r"[a-z_]+\.[a-z_]+")
WRITERS = {"record", "_record", "_audit", "_switch"}


def written_acts() -> Iterator[str]:
    for app in ("organizations", "webhooks", "commands"):
        for path in (ROOT / app).rglob("*.py"):
            if "audit" in (source := path.read_text()):
                yield from _acts_in(ast.parse(source))


def _acts_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            for argument in node.args:
                value = getattr(argument, "value", None)
                if name in WRITERS and isinstance(value, str) and ACT.fullmatch(value):
                    yield value


def test_every_act_that_is_written_has_words() -> None:
    written = set(written_acts())
    assert len(written) > 20
    assert written - ACTS.keys() == set(), "Give each a sentence in organizations.rules.acts.ACTS."


def test_every_edit_in_the_admin_has_words() -> None:
    edited = {
        f"{model._meta.model_name}.edit"
        for model, editor in admin.site._registry.items()
        if isinstance(editor, TenantAdmin) and editor.edit_permission
    }
    assert edited
    assert edited - ACTS.keys() == set(), "Give each a sentence in organizations.rules.acts.ACTS."


def test_every_group_has_a_tab_and_every_target_a_page() -> None:
    assert GROUPS.keys() == TABS.keys()
    assert set(TARGET_TYPES) == KINDS.keys()
    assert len(set(TARGET_TYPES)) == len(TARGET_TYPES)


def test_traffic_is_told_from_the_rest_by_the_act_alone() -> None:
    assert {act for act in ACTS if is_traffic(act)} == {
        act for act in ACTS if act.startswith(tuple(f"{target}." for target in TRAFFIC))
    }
    assert not is_traffic("endpoint.enable")


def test_an_act_without_words_stands_as_it_was_written() -> None:
    assert words_of("rocket.launch") == "rocket.launch"
