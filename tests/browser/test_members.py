"""Members and keys in a browser: somebody is invited and gets in, a key is made once and works, and both
end at once.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from organizations import keys, members
from organizations.models import ApiKey, Membership
from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "anna@example.com"
A_PASSWORD = "four words make one"


def owners_password(scene: Scene) -> str:
    return scene.provisioned.members[roles.OWNER].password


def open_sheet(page: Page, name: str) -> None:
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def fill(scene: Scene) -> Membership:
    """Keys in every state, and members who were invited or have long addresses."""
    now = timezone.now()
    target = scene.provisioned.members[roles.OPERATOR].membership
    for name, ends in (("expired", now), ("runs out", now + timedelta(days=9)), ("x" * 100, None)):
        key, _ = keys.make(scene.owner, target.pk, name, ["commands:read"], ends)
    keys.revoke(scene.owner, key)
    members.add(scene.owner, f"{'a' * 60}@example.com", roles.VIEWER)
    return members.add(scene.owner, NEW, roles.OPERATOR).membership


def test_every_page_holds_in_both_themes_and_at_every_width(
    scene: Scene, open_window: OpenWindow
) -> None:
    invited = fill(scene)
    key = ApiKey.objects.get(user=scene.viewer.user)
    owner = scene.provisioned.members[roles.OWNER].membership
    window = open_window(scene.owner)
    window.forgive("status of 409")
    paths = [
        "",
        "add/",
        "keys/new/",
        f"keys/{key.pk}/revoke/",
        f"{owner.pk}/remove/",
        *(f"{invited.pk}/{act}/" for act in ("role", "invite", "remove")),
    ]
    faults = [fault for path in paths for fault in faults_of(window.page, f"/members/{path}")]
    assert not faults, "\n".join(faults)


def test_somebody_is_added_chooses_a_password_gets_in_and_is_removed(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner).page
    page.goto("/members/")
    open_sheet(page, "Add a member…")
    expect(page.get_by_label("Email address")).to_be_focused()
    page.get_by_label("Email address").fill(NEW)
    page.get_by_label("Your password").fill(owners_password(scene))
    page.get_by_role("button", name="Add").click()
    way_in = page.locator("#way-in").inner_text()
    page.get_by_role("link", name="I have handed it over").click()
    row = page.get_by_role("row", name=re.compile(NEW))
    expect(row).to_contain_text("invited")

    guest = open_window(None)
    anna = guest.page
    path = way_in.partition("/accounts/")[2]
    assert not faults_of(anna, f"/accounts/{path}")
    anna.get_by_label("New Password", exact=True).fill(A_PASSWORD)
    anna.get_by_label("New Password (again)").fill(A_PASSWORD)
    anna.get_by_role("button", name="Set the password").click()
    anna.get_by_role("link", name="Sign in").click()
    anna.get_by_label("Email").fill(NEW)
    anna.get_by_label("Password").fill(A_PASSWORD)
    anna.get_by_role("button", name="Sign in").click()
    anna.goto("/commands/")
    expect(anna.locator("#issue")).to_be_visible()
    expect(row).not_to_contain_text("invited")

    open_sheet(page, f"Remove {NEW}")
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(row).to_have_count(0)
    guest.forgive("status of 403")
    anna.reload()
    expect(anna.get_by_role("heading", name="You belong to no organization yet")).to_be_visible()


def test_a_role_is_changed_after_a_wrong_password(scene: Scene, open_window: OpenWindow) -> None:
    window = open_window(scene.owner)
    window.forgive("status of 422")
    page = window.page
    page.goto("/members/")
    email = scene.viewer.user.email
    open_sheet(page, f"Role of {email}")
    page.get_by_label("Operator:").check()
    page.get_by_label("Your password").fill("a guess")
    page.locator("#confirm").click()
    expect(page.locator("#id_password_error")).to_be_visible()
    expect(page.get_by_label("Operator:")).to_be_checked()
    page.get_by_label("Your password").fill(owners_password(scene))
    page.locator("#confirm").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    row = page.locator("#members-body").get_by_role("row", name=email)
    expect(row.locator(".c-role")).to_have_text("Operator")


def test_the_only_owner_learns_why_by_keyboard(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto("/members/")
    stays = page.locator("[id^=remove-][aria-disabled=true]")
    stays.focus()
    expect(page.get_by_role("tooltip")).to_be_visible()
    stays.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_key_is_made_by_a_double_click_once_copied_and_revoked(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/members/keys/new/")
    page.get_by_label("Name", exact=True).fill("gateway")
    page.get_by_label("commands:read").check()
    page.get_by_label("Your password").fill(owners_password(scene))
    page.get_by_role("button", name="Make the key").dblclick()
    text = page.locator("#key").inner_text()
    page.locator("#copy-key").click()
    assert page.evaluate("navigator.clipboard.readText()") == text
    expect(page.locator("#example")).to_contain_text(f'-H "x-api-key: {text}"')
    assert keys.authenticate(text, None).may("commands:read")
    page.get_by_role("link", name="I have stored it").click()
    assert ApiKey.objects.filter(name="gateway").count() == 1
    expect(page.locator("#api-keys")).to_contain_text("gateway")
    assert text not in page.content()

    open_sheet(page, "Revoke gateway")
    page.get_by_role("button", name="Revoke for good").click()
    key = ApiKey.objects.get(name="gateway")
    expect(page.locator(f"#k-{key.pk}")).to_contain_text("Revoked")
    with pytest.raises(keys.InvalidKey):
        keys.authenticate(text, None)


def test_going_back_to_the_form_makes_no_second_key(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto("/members/keys/new/")
    page.get_by_label("Name", exact=True).fill("gateway")
    page.get_by_label("events:write").check()
    page.get_by_label("Your password").fill(owners_password(scene))
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("#key")).to_be_visible()
    page.reload()
    expect(page).to_have_url(re.compile("/members/$"))
    assert ApiKey.objects.filter(name="gateway").count() == 1
