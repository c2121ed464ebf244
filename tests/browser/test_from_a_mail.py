"""An owner whom a mail calls: from its link to an endpoint that works again, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from pytest_django import Settings

from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene, fail_with
from tests.mail_sink import MailSink, use
from tests.organizations.notices.posting import gathered, post
from tests.receivers import ScriptedReceiver, respond
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def link_of_the_mail(scene: Scene, server: str, settings: Settings) -> str:
    """Twenty attempts fail, a mail goes out, and its reader finds the address in it."""
    for _ in range(20):
        fail_with(scene.send(), [503])
    settings.CONSOLE_URL = server
    gathered()
    with MailSink() as sink:
        use(settings, sink.port)
        assert post() == 1
    [mail] = sink.mails
    assert mail["To"] == scene.owner.user.email
    text = mail.get_body(("plain",))
    assert text
    [link] = re.findall(rf"{server}/endpoints/[0-9a-f-]{{36}}/", text.get_content())
    return str(link)


def test_an_owner_follows_a_mail_s_link_signs_in_pings_and_enables(
    scene: Scene,
    server: str,
    settings: Settings,
    open_window: OpenWindow,
    request: pytest.FixtureRequest,
) -> None:
    link = link_of_the_mail(scene, server, settings)
    request.getfixturevalue("engine")
    owner = scene.provisioned.members[roles.OWNER]
    page = open_window(None).page
    with ScriptedReceiver(respond(200)) as receiver:
        Endpoint.objects.filter(pk=scene.endpoint.pk).update(url=receiver.url)
        page.goto(link)
        page.get_by_label("Email").fill(owner.membership.user.email)
        page.get_by_label("Password", exact=True).fill(owner.password)
        page.get_by_role("button", name="Sign in").click()

        expect(page).to_have_url(link)
        expect(page.locator("#disabled-notice")).to_contain_text("It failed 20 times in a row.")
        assert not faults_of(page, link)
        page.get_by_role("link", name="Ping…").click()
        page.get_by_role("button", name="Send a ping").click()
        expect(page.locator("#last-ping")).to_contain_text("200")
        expect(page.locator("#state")).to_have_text("Disabled")

    page.get_by_role("link", name="Enable…").click()
    page.get_by_label("Your password").fill(owner.password)
    page.locator("#confirm").click()
    expect(page.locator("#state")).to_have_text("Enabled")
    expect(page.locator("#disabled-notice")).to_have_count(0)
    assert len(receiver.requests) == 1, "nothing is replayed"


@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
def test_whoever_is_no_owner_sees_why_and_can_do_nothing_there(
    scene: Scene, server: str, settings: Settings, open_window: OpenWindow, role: str
) -> None:
    link = link_of_the_mail(scene, server, settings)
    window = open_window(scene.operator if role == roles.OPERATOR else scene.viewer)
    window.forgive("status of 403")
    page = window.page
    page.goto(link)
    expect(page.locator("#disabled-notice")).to_contain_text("Only an owner enables it again")
    expect(page.get_by_role("link", name="Enable…")).to_have_count(0)
    answer = page.goto(f"{link}enable/")
    assert answer
    assert answer.status == 403
