"""The Audit page in a browser: accessible, live, and narrowed by its filters."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from commands import datasets
from organizations import keys, members
from organizations.models import AuditEntry
from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene
from webhooks import endpoints

pytestmark = pytest.mark.django_db(transaction=True)


def fill(scene: Scene) -> None:
    """Acts of every kind, by hand and by key, with long names and a page that leads on."""
    scene.delivered()
    actor = keys.authenticate(scene.provisioned.members[roles.OPERATOR].api_key, "2001:db8::77")
    datasets.disarm(actor, scene.dataset.pk)
    datasets.create_experiment(scene.owner, "x" * 200)
    endpoints.edit(scene.owner, scene.endpoint.pk, {"description": "Moved " * 60, "name": "G"})
    endpoints.disable(scene.owner, scene.endpoint.pk, "Receiver is moving")
    members.add(scene.owner, f"{'a' * 60}@example.com", roles.VIEWER)
    for _ in range(30):
        datasets.arm(scene.operator, scene.dataset.pk)
        datasets.disarm(scene.operator, scene.dataset.pk)


def test_the_page_holds_in_both_themes_and_at_every_width(
    scene: Scene, open_window: OpenWindow
) -> None:
    fill(scene)
    page = open_window(scene.owner).page
    paths = ["", "?about=endpoints", "?act=endpoint.archive", f"?target={scene.dataset.pk}&who=x"]
    faults = [fault for path in paths for fault in faults_of(page, f"/audit/{path}")]
    assert not faults, "\n".join(faults)


def test_filters_narrow_and_stand_in_the_address(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto("/audit/")
    page.get_by_role("radio", name="Endpoints").check()
    expect(page.locator("#audit-body")).to_contain_text("Registered the endpoint")
    expect(page.locator("#audit-body")).not_to_contain_text("Armed the dataset")
    expect(page).to_have_url(re.compile(r"/audit/\?about=endpoints$"))
    page.get_by_label("Act", exact=True).select_option("dataset.arm")
    expect(page.get_by_role("heading", name="No entry matches")).to_be_visible()
    page.get_by_role("link", name="Clear the filters").click()
    expect(page.locator("#audit-body")).to_contain_text("Armed the dataset")
    page.get_by_label("Person or key").select_option(str(scene.owner.user.pk))
    expect(page).to_have_url(re.compile(rf"/audit/\?who={scene.owner.user.pk}$"))


def test_what_is_done_meanwhile_appears_by_itself(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto("/audit/")
    datasets.disarm(scene.operator, scene.dataset.pk)
    entry = AuditEntry.objects.latest("pk")
    expect(page.locator(f"#a-{entry.pk}")).to_contain_text("Disarmed the dataset")


def test_a_disclosure_stays_open_when_news_arrive(scene: Scene, open_window: OpenWindow) -> None:
    entry = AuditEntry.objects.get(act="endpoint.create")
    page = open_window(scene.owner).page
    page.goto("/audit/")
    page.locator(f"#more-{entry.pk}-open").press("Enter")
    expect(page.locator(f"#a-{entry.pk}")).to_contain_text("receives commands")
    datasets.disarm(scene.operator, scene.dataset.pk)
    expect(page.locator("#audit-body, #new-rows")).to_contain_text(
        [re.compile("1 new|Disarmed"), re.compile(".*")]
    )
    expect(page.locator(f"#more-{entry.pk}")).to_have_attribute("open", "")
