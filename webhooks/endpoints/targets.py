"""Where an endpoint's webhooks may go."""

from __future__ import annotations

from django.conf import settings

from webhooks.engine.resolver import AddressBlocked, NameFailed, NameTimedOut, Resolver
from webhooks.rules.addresses import AddressPolicy, ParsedTarget, UrlNotAllowed, check_url

# How long a registration waits for a name to resolve, seconds.
RESOLVE_S = 2.0

_resolver = Resolver()


def address_policy() -> AddressPolicy:
    """Which addresses the settings allow."""
    return AddressPolicy(
        allow_http=settings.ENDPOINT_ALLOW_HTTP,
        allowed_networks=settings.ENDPOINT_ALLOWED_NETWORKS,
    )


def allowed_target(url: str) -> ParsedTarget:
    """The URL, taken apart and normalised. Raises UrlNotAllowed when webhooks may not go there.

    A name is resolved, and each of its addresses must be allowed. One that does not resolve (yet) is
    taken: every attempt looks again.
    """
    target = check_url(url, address_policy())
    try:
        _resolver.allowed_addresses(target, address_policy(), RESOLVE_S)
    except AddressBlocked as blocked:
        raise UrlNotAllowed(f"{target.host} is not a public address: {blocked}") from None
    except (NameFailed, NameTimedOut):
        pass
    return target
