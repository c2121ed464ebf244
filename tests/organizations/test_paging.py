"""Long lists: by key, without counting, and with filters that look only so far."""

from __future__ import annotations

import pytest
from django.db.models import Q

from organizations import paging
from organizations.paging import Listing, Page
from tests.factories import Scene
from webhooks.models import Delivery

DELIVERED, PENDING = Q(state="delivered"), Q(state="pending")


@pytest.fixture
def listing(scene: Scene) -> Listing[Delivery]:
    """Deliveries of an organization."""
    mine = Delivery.objects.filter(organization=scene.organization).select_related("event")
    return Listing(mine, "pk", "created_at")


@pytest.fixture
def few_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter looks at four rows."""
    monkeypatch.setattr(paging, "LOOKED_AT", 4)


def test_a_filter_that_finds_nothing_near_says_how_far_it_looked_and_goes_on_from_there(
    scene: Scene, listing: Listing[Delivery], few_looked_at: None
) -> None:
    rare = scene.delivered().delivery
    assert rare
    others = [scene.send() for _ in range(6)]
    near = listing.page(None, DELIVERED)
    assert (near.rows, near.older) == ([], others[2].pk)
    assert near.looked_to == others[2].created_at
    far = listing.page(near.older, DELIVERED)
    assert [row.pk for row in far.rows] == [rare.pk]
    assert far.looked_to is None


def test_what_matches_near_is_shown_and_the_rest_looked_for_later(
    scene: Scene, listing: Listing[Delivery], few_looked_at: None
) -> None:
    sent = [scene.send() for _ in range(6)]
    page = listing.page(None, PENDING)
    assert [row.pk for row in page.rows] == [one.pk for one in reversed(sent[2:])]
    assert page.older == sent[2].pk
    assert listing.page(page.older, PENDING) == Page([sent[1], sent[0]])


def test_a_full_page_leads_on_from_its_last_row(
    scene: Scene, listing: Listing[Delivery], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    sent = [scene.send() for _ in range(3)]
    for condition in (None, PENDING):
        page = listing.page(None, condition)
        assert (page.older, page.looked_to) == (sent[1].pk, None)
        assert listing.page(page.older, condition) == Page([sent[0]])
