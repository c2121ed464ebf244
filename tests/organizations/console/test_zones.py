"""Times in UTC or in the browser's zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from organizations.console import words, zones
from tests.factories import Scene
from tests.visitors import Visitor

NOON = datetime(2026, 7, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("", "2026-07-31 12:00:00 UTC"),
        ("Europe/Berlin", "2026-07-31 14:00:00 UTC+2 (Europe/Berlin)"),
        ("America/St_Johns", "2026-07-31 09:30:00 UTC-2:30 (America/St_Johns)"),
        ("Asia/Kathmandu", "2026-07-31 17:45:00 UTC+5:45 (Asia/Kathmandu)"),
        ("Atlantic/Reykjavik", "2026-07-31 12:00:00 UTC (Atlantic/Reykjavik)"),
        ("UTC", "2026-07-31 12:00:00 UTC"),
        ("Etc/GMT+5", "2026-07-31 07:00:00 UTC-5 (Etc/GMT+5)"),
    ],
)
def test_a_time_says_how_far_its_zone_is_from_utc(zone: str, said: str) -> None:
    with timezone.override(zones.named(zone)):
        assert words.in_full(NOON) == said


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus_Mons",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe",
        "a" * 200,
        "\0",
        "é",
    ],
)
def test_a_zone_that_nobody_knows_is_utc(name: str) -> None:
    with timezone.override(zones.named(name)):
        assert words.absolute(NOON) == "2026-07-31 12:00:00 UTC"


def test_summer_time_is_the_zones_own() -> None:
    january = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    with timezone.override(zones.named("Europe/Berlin")):
        assert (words.clock(january), words.clock(NOON)) == ("13:00:00 UTC+1", "14:00:00 UTC+2")


@pytest.mark.django_db
@pytest.mark.usefixtures("plain_static")
def test_the_cookie_of_a_browser_decides_for_its_pages_and_polls(scene: Scene) -> None:
    scene.issued()
    visitor = Visitor(scene.viewer)
    in_utc = visitor.get("/commands/")
    assert 'data-zone="' not in in_utc.html
    assert " UTC+" not in in_utc.html
    visitor.client.cookies[zones.COOKIE] = "Asia/Tokyo"
    shown = visitor.get("/commands/")
    assert '<html lang="en" data-zone="Asia/Tokyo">' in shown.html
    assert "UTC+9 (Asia/Tokyo)" in shown.html
    # A page that another tab left in UTC is told anew.
    polled = visitor.poll("/commands/", "commands-live", in_utc.revision)
    assert polled.status == 200
    assert "UTC+9 (Asia/Tokyo)" in polled.html


@pytest.mark.django_db
@pytest.mark.usefixtures("plain_static")
def test_the_admin_shows_times_in_the_same_zone(scene: Scene) -> None:
    command, visitor = scene.issued(), Visitor(scene.owner)
    visitor.client.cookies[zones.COOKIE] = "Asia/Tokyo"
    in_tokyo = timezone.localtime(command.issued_at, zones.named("Asia/Tokyo"))
    shown = visitor.get(f"/admin/commands/command/{command.pk}/change/")
    assert f"{in_tokyo:%Y-%m-%d %H:%M:%S} JST" in shown.text
