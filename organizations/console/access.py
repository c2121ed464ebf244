"""Who may see a page: somebody signed in, a member, whose role holds the page's permission.

Every view of the console is wrapped by ``permitted``; a test walks the addresses and says which is not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Concatenate, ParamSpec, Protocol, cast
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.db.models import DateTimeField, Func
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from organizations.actors import Actor, NotPermitted
from organizations.models import Membership, User

SESSION_KEY = "organization"
# The database's clock, for the page's countdowns: milliseconds since 1970.
CLOCK_HEADER = "X-Server-Now"

P = ParamSpec("P")


class ConsoleRequest(HttpRequest):
    """A request of a member, as the console's views get it."""

    actor: Actor
    memberships: Sequence[Membership]
    htmx: HtmxDetails
    # When the database began to answer this request.
    now: datetime


View = Callable[Concatenate[ConsoleRequest, P], HttpResponseBase]


# For an act's page: it says what the act means, and a POST does it.
confirmed_by_post = require_http_methods(["GET", "HEAD", "POST"])


class GuardedView(Protocol[P]):
    """A view that says which permission it asks for."""

    permission: str

    def __call__(
        self, request: HttpRequest, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase: ...


def permitted(permission: str) -> Callable[[View[P]], GuardedView[P]]:
    """Let only members in whose role holds ``permission``, and give them ``request.actor``."""

    def decorate(view: View[P]) -> GuardedView[P]:
        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            response = _answer(cast(ConsoleRequest, request), permission, view, *args, **kwargs)
            # No copy anywhere: after signing out, "back" must not show the page again.
            add_never_cache_headers(response)
            patch_vary_headers(response, ["HX-Request"])
            return response

        guarded.permission = permission  # type: ignore[attr-defined]
        return cast(GuardedView[P], guarded)

    return decorate


def _answer(
    request: ConsoleRequest,
    permission: str,
    view: View[P],
    *args: P.args,
    **kwargs: P.kwargs,
) -> HttpResponseBase:
    if not request.user.is_authenticated:
        return to_login(request)
    request.memberships = _memberships(request.user)
    if not request.memberships:
        return render(request, "no_membership.html", status=403)
    membership = _chosen(request.memberships, request.session.get(SESSION_KEY))
    request.actor = Actor.of(membership, via="console", address=request.META.get("REMOTE_ADDR"))
    # Read along with the memberships: a console that is watched all day asks every two seconds.
    request.now = membership.now  # type: ignore[attr-defined]
    try:
        request.actor.require(permission)
        response = view(request, *args, **kwargs)
    except NotPermitted:
        response = forbidden(request)
    response.headers[CLOCK_HEADER] = str(round(request.now.timestamp() * 1000))
    return response


def _memberships(user: User) -> Sequence[Membership]:
    return list(
        Membership.objects.filter(user=user)
        .select_related("organization", "user")
        .annotate(now=Func(function="clock_timestamp", output_field=DateTimeField()))
        .order_by("organization__name", "pk")
    )


def _chosen(memberships: Sequence[Membership], organization_id: str | None) -> Membership:
    wanted = (m for m in memberships if str(m.organization_id) == organization_id)
    return next(wanted, memberships[0])


def choose(request: ConsoleRequest, organization_id: UUID) -> bool:
    """Work in another of the user's organizations from now on; False when it is none of them."""
    mine = any(m.organization_id == organization_id for m in request.memberships)
    if mine:
        request.session[SESSION_KEY] = str(organization_id)
    return mine


def to_login(request: ConsoleRequest) -> HttpResponse:
    """To the login page and back again; from a fragment, the whole page goes there."""
    if not request.htmx:
        return redirect_to_login(request.get_full_path())
    page = request.htmx.current_url_abs_path or reverse("home")
    return HttpResponseClientRedirect(redirect_to_login(page).headers["Location"])


def forbidden(request: ConsoleRequest) -> HttpResponse:
    """Not with this role: a page, or a fragment where one was asked for."""
    template = "_forbidden.html" if request.htmx else "403.html"
    return render(request, template, status=403)
