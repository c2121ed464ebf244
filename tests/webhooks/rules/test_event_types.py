"""How types of events are named, and which subscriptions cover them."""

from __future__ import annotations

import pytest

from webhooks.rules import event_types
from webhooks.rules.event_types import CATALOGUE


@pytest.mark.parametrize(
    "text", ["ping", "order.created", "a.b.c.d", "order_2.line_item.v1", "0", "a" * 100]
)
def test_words_with_dots_between_them_are_a_type(text: str) -> None:
    assert event_types.is_type(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a.", ".a", "a..b", "a.*", "*", "a b", " a", "a\n", "a\0", "a/b"),
        *("A", "Order.created", "order-created", "é", "１", "a" * 101),
    ],
)
def test_anything_else_is_no_type(text: str) -> None:
    assert not event_types.is_type(text)


@pytest.mark.parametrize("text", ["*", "command.*", "a.b.*", "ping", "order.created"])
def test_a_subscription_is_a_type_or_a_prefix_of_types(text: str) -> None:
    assert event_types.is_subscription(text)


@pytest.mark.parametrize(
    "text", ["", "**", ".*", "*.*", "*.a", "a.*.b", "a*", "a.b*", "A.*", "a.**", "a" * 99 + ".*"]
)
def test_a_wildcard_stands_alone_or_after_a_last_dot(text: str) -> None:
    assert not event_types.is_subscription(text)


@pytest.mark.parametrize(
    ("subscription", "covered", "not_covered"),
    [
        ("order.created", ["order.created"], ["order", "order.created.late", "order.create"]),
        ("order.*", ["order.created", "order.line.added"], ["order", "orders.created", "ping"]),
        ("*", ["order.created", "ping", "a.b.c"], []),
    ],
)
def test_a_subscription_covers_its_types_and_no_others(
    subscription: str, covered: list[str], not_covered: list[str]
) -> None:
    assert all(event_types.matches(subscription, one) for one in covered)
    assert not any(event_types.matches(subscription, one) for one in not_covered)


def test_one_of_several_subscriptions_is_enough() -> None:
    assert event_types.is_subscribed(["a.*", "b.c"], "b.c")
    assert not event_types.is_subscribed(["a.*", "b.c"], "b.d")
    assert not event_types.is_subscribed([], "b.c")


@pytest.mark.parametrize("text", ["ping", "command.acked", "command.anything", "endpoint.mine"])
def test_the_console_s_own_types_are_reserved(text: str) -> None:
    assert event_types.is_reserved(text)


@pytest.mark.parametrize(
    "text", ["order.created", "commands.x", "my.command.x", "pings", "command"]
)
def test_all_others_are_an_integrator_s_to_use(text: str) -> None:
    assert not event_types.is_reserved(text)


def test_the_catalogue_lists_what_the_console_sends() -> None:
    assert {one.name for one in CATALOGUE if one.subscribable} == {
        "command.delivered",
        "command.failed",
        "command.acked",
        "command.nacked",
        "command.timed_out",
        "command.retracted",
        "endpoint.disabled",
    }
    assert {one.name for one in CATALOGUE if not one.subscribable} == {"ping", "command.dispatch"}
    assert all(event_types.is_type(one.name) for one in CATALOGUE)
    assert all(event_types.is_reserved(one.name) for one in CATALOGUE)
