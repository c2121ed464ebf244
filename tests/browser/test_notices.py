"""The Notices page in a browser: accessible, within the window, and a choice that is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from organizations.models import Notice
from organizations.notices import outbox
from organizations.rules.notices import Kind
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene
from tests.organizations.notices.posting import disabling, fact_for, tell

pytestmark = pytest.mark.django_db(transaction=True)


def notices_in_every_state(scene: Scene) -> None:
    """Sent, shown, given up, tried before, under way, waiting."""
    ends: list[Callable[[outbox.Mail], None]] = [
        lambda mail: outbox.record_sent(mail, Notice.Channel.MAIL),
        lambda mail: outbox.record_sent(mail, Notice.Channel.PAGE),
        lambda mail: outbox.record_failed(mail, "550 no such user " * 9, final=True),
        lambda mail: outbox.record_failed(mail, "The connection was refused.", final=False),
        lambda mail: None,
    ]
    facts = [
        disabling(scene.organization.pk, name="Gateway " * 20),
        *(fact_for(scene.operator, kind) for kind in Kind if kind != Kind.ENDPOINT_DISABLED),
        fact_for(scene.owner, name="x" * 200),
    ]
    tell(*facts)
    for end in ends:
        mail = outbox.claim()
        assert mail
        end(mail)
    outbox.tell([fact_for(scene.owner, Kind.COMMAND_FAILED)])


def test_the_page_holds_in_both_themes_and_at_every_width(
    scene: Scene, open_window: OpenWindow
) -> None:
    notices_in_every_state(scene)
    page = open_window(scene.owner).page
    assert not faults_of(page, "/notices/")


def test_a_choice_of_mails_is_kept(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.operator).page
    page.goto("/notices/")
    page.get_by_label("A command of mine failed").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your choice of mails is stored.")).to_be_visible()
    expect(page.get_by_label("A command of mine failed")).not_to_be_checked()
    expect(page.get_by_label("A command of mine timed out")).to_be_checked()
