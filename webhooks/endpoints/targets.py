"""Where an endpoint's webhooks may go."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings

from webhooks.engine.resolver import AddressBlocked, NameFailed, NameTimedOut, Resolver
from webhooks.rules.addresses import (
    DEFAULT_PORTS,
    AddressPolicy,
    ParsedTarget,
    UrlNotAllowed,
    check_url,
)

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
    taken: every attempt looks again. The console itself is no receiver: a webhook that calls the API
    could cause the next one, for ever.
    """
    target = check_url(url, address_policy())
    addresses: list[str] = []
    try:
        addresses = _resolver.allowed_addresses(target, address_policy(), RESOLVE_S)
    except AddressBlocked as blocked:
        raise UrlNotAllowed(f"{target.host} is not a public address: {blocked}.") from None
    except (NameFailed, NameTimedOut):
        pass
    if any((host, target.port) in _console() for host in (target.host, *addresses)):
        raise UrlNotAllowed("This is the console's own address. Use the address of a receiver.")
    return target


def _console() -> set[tuple[str, int]]:
    """Hosts and ports at which this console answers: its URL, and its other names at the same port."""
    own = urlsplit(settings.CONSOLE_URL)
    port = own.port or DEFAULT_PORTS.get(own.scheme, 443)
    return {(host, port) for host in (own.hostname or "", *_other_names())}


def _other_names() -> Iterator[str]:
    for name in settings.ALLOWED_HOSTS:
        if not name.startswith((".", "*")):
            yield name.strip("[]").lower()
