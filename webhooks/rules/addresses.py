"""Where a delivery may go: which URLs an endpoint may have and which addresses may be connected to.

Only public addresses are allowed, because a URL that a customer types is otherwise a way into the
network the console stands in. The tables are our own: `ipaddress` has changed its mind about what
is private between Python versions. IPv6 fails closed: only allocated global unicast passes.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from urllib.parse import quote, urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_URL_LENGTH = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

# Ports of services that read a POST as commands of their own (mail, chat, file sharing): the
# list of the Fetch standard, which browsers refuse for the same reason.
# fmt: off
BAD_PORTS = frozenset([
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080,
])
# fmt: on


@dataclass(frozen=True)
class AddressPolicy:
    """What the installation allows beyond https to public addresses."""

    allow_http: bool = False
    allowed_networks: tuple[Network, ...] = ()


class UrlNotAllowed(ValueError):
    """An endpoint may not have this URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class ParsedTarget:
    """A URL that was checked, in the parts that a request needs."""

    scheme: str
    host: str  # ASCII, lower case, without brackets or trailing dot: also the TLS server name
    port: int
    target: str  # path and query, percent-encoded
    literal: Address | None  # set when the host is an address

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if isinstance(self.literal, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host_header}{self.target}"


_NETLOC = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# These four mean different hosts under IDNA 2003 (which Python has) and IDNA 2008.
_IDNA_DEVIATIONS = frozenset("ßẞς\u200c\u200d")


# An attempt asks both again for what its endpoint's last attempt asked; they look at each character.
@functools.lru_cache(maxsize=4096)
def check_url(url: str, policy: AddressPolicy) -> ParsedTarget:
    """Take the URL apart, or raise UrlNotAllowed with a reason that never repeats the URL.

    A host that is an address is judged here; a name is judged where it is resolved.
    """
    _check_characters(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UrlNotAllowed("The URL is malformed. Check the host.") from None
    _check_scheme(parts.scheme, policy)
    if "@" in parts.netloc:
        raise UrlNotAllowed(
            "Remove the user name and password from the URL: "
            "every delivery is signed, which is how a receiver knows who sent it."
        )
    raw_host, port = _split_netloc(parts.netloc)
    host, literal = _parse_host(raw_host)
    checked = ParsedTarget(
        scheme=parts.scheme,
        host=host,
        port=_checked_port(port, parts.scheme),
        target=_encode_target(parts.path, parts.query, has_query="?" in url),
        literal=literal,
    )
    if len(checked.url) > MAX_URL_LENGTH:
        raise UrlNotAllowed(f"The URL is longer than {MAX_URL_LENGTH} characters. Shorten it.")
    if literal and (reason := blocked_reason(literal, policy)):
        raise UrlNotAllowed(f"{reason}. Use an address that is public.")
    return checked


def _check_characters(url: str) -> None:
    if len(url) > MAX_URL_LENGTH:
        raise UrlNotAllowed(f"The URL is longer than {MAX_URL_LENGTH} characters. Shorten it.")
    if any(c == "\\" or c.isspace() or not c.isprintable() for c in url):
        raise UrlNotAllowed(
            "The URL contains a space, a backslash or a control character. Remove it."
        )
    if "#" in url:
        raise UrlNotAllowed("Remove the fragment (# and what follows): it is never sent.")
    if _BAD_ESCAPE.search(url):
        raise UrlNotAllowed("A % must be followed by two hex digits. Write %25 for a percent sign.")


def _check_scheme(scheme: str, policy: AddressPolicy) -> None:
    if scheme == "https" or (scheme == "http" and policy.allow_http):
        return
    if scheme == "http":
        raise UrlNotAllowed("Plain http is not allowed. Use an https:// URL.")
    raise UrlNotAllowed("The URL must start with https://.")


def _split_netloc(netloc: str) -> tuple[str, int | None]:
    match = _NETLOC.fullmatch(netloc)
    if match is None:
        raise UrlNotAllowed(
            "The host or the port is malformed. Write https://host/path or https://host:port/path."
        )
    host, port = match.groups()
    return host, None if port is None else int(port)


def _checked_port(port: int | None, scheme: str) -> int:
    if port is None:
        return DEFAULT_PORTS[scheme]
    if not 0 < port <= 65535:
        raise UrlNotAllowed("The port must be between 1 and 65535.")
    if port in BAD_PORTS:
        raise UrlNotAllowed(f"Port {port} belongs to another protocol. Use a port for HTTP.")
    return port


def _parse_host(host: str) -> tuple[str, Address | None]:
    """The host as DNS or the connection needs it, and the address if it is one.

    A name that ends in a number is one of the many old spellings of an IPv4 address (0x7f.1,
    2130706433, 0177.0.0.1), which resolvers understand differently: only the plain one passes.
    """
    try:
        if host.startswith("["):
            literal: Address = IPv6Address(host[1:-1])
            return str(literal), literal
        name = _ascii_host(host)
        if not _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]):
            return name, None
        literal = IPv4Address(name)
        return str(literal), literal
    except AddressValueError:
        raise UrlNotAllowed(
            "The IP address is malformed. Write IPv4 as four decimal numbers, IPv6 in brackets."
        ) from None


def _ascii_host(host: str) -> str:
    """The name as DNS has it."""
    if _IDNA_DEVIATIONS & set(host):
        raise UrlNotAllowed("Write the host name in its ASCII form (xn--…).")
    try:
        ascii_host = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise UrlNotAllowed("The host name is malformed.") from None
    labels = ascii_host.split(".")
    if len(ascii_host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlNotAllowed("The host name is malformed.")
    return ascii_host


def _encode_target(path: str, query: str, *, has_query: bool) -> str:
    target = (path or "/") + ("?" + query if has_query else "")
    return quote(target, safe="!$%&'()*+,/:;=?@[]~")


@functools.lru_cache(maxsize=4096)
def blocked_reason(address: str | Address, policy: AddressPolicy) -> str | None:
    """Why nothing may be sent to this address, or None when it may."""
    try:
        ip = ip_address(address) if isinstance(address, str) else address
    except ValueError:
        return "The name resolved to something that is not an IP address"
    if any(a in network for a in _unwrapped(ip) for network in policy.allowed_networks):
        return None
    words = _special_ipv4(ip) if isinstance(ip, IPv4Address) else _special_ipv6(ip)
    return f"{ip} is {words}" if words else None


_SPECIAL_IPV4 = tuple(
    (IPv4Network(network), words)
    for network, words in [
        ("0.0.0.0/8", "an address of this host, not of a receiver"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a carrier-grade NAT address"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "an address reserved for protocols"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "a reserved address"),
    ]
)

_SPECIAL_IPV6 = tuple(
    (IPv6Network(network), words)
    for network, words in [
        ("::/128", "the unspecified address"),
        ("::1/128", "a loopback address"),
        ("100::/64", "a discard address"),
        ("2001:db8::/32", "an address for documentation"),
        ("2001:2::/48", "an address for benchmarks"),
        ("2001:10::/28", "an ORCHID, not a network address"),
        ("2001:20::/28", "an ORCHID, not a network address"),
        ("2001::/23", "an address reserved for protocols"),
        ("3ffe::/16", "an address of a network that was given up"),
        ("3fff::/20", "an address for documentation"),
        ("5f00::/16", "a segment routing identifier"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
    ]
)

_NAT64 = IPv6Network("64:ff9b::/96")

# IPv6 forms that stand for an IPv4 address: (network, what it is, how far right the 32 bits
# stand, what to xor them with). A host with the right tunnel would connect to the IPv4 address.
_EMBEDDING = tuple(
    (IPv6Network(network), words, shift, mask)
    for network, words, shift, mask in [
        ("::ffff:0:0/96", "an IPv4-mapped form", 0, 0),
        ("::ffff:0:0:0/96", "an IPv4-translated form", 0, 0),
        ("::/96", "an IPv4-compatible form", 0, 0),
        ("64:ff9b::/96", "a NAT64 form", 0, 0),
        ("64:ff9b:1::/48", "a local NAT64 form", 0, 0),
        ("2002::/16", "a 6to4 form", 80, 0),
        ("2001::/32", "a Teredo form", 0, 0xFFFFFFFF),
    ]
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")


def _embedded(ip: IPv6Address) -> tuple[str, IPv4Address] | None:
    for network, words, shift, mask in _EMBEDDING:
        if ip in network:
            return words, IPv4Address(int(ip) >> shift & 0xFFFFFFFF ^ mask)
    return None


def _unwrapped(ip: Address) -> Iterator[Address]:
    """The address, and the IPv4 address that it stands for."""
    yield ip
    if isinstance(ip, IPv6Address) and (embedded := _embedded(ip)):
        yield embedded[1]


def _special_ipv4(ip: IPv4Address) -> str | None:
    return next((words for network, words in _SPECIAL_IPV4 if ip in network), None)


def _special_ipv6(ip: IPv6Address) -> str | None:
    embedded = _embedded(ip)
    if embedded and int(ip) > 1:  # ::/96 also holds :: and ::1, which have names of their own
        words, ipv4 = embedded
        # Where IPv6 is all there is, DNS64 gives every IPv4 receiver an address of this form.
        if ip in _NAT64 and _special_ipv4(ipv4) is None:
            return None
        return f"{words} of {ipv4}, not a public address"
    special = next((words for network, words in _SPECIAL_IPV6 if ip in network), None)
    return special or (None if ip in _GLOBAL_UNICAST else "not a public address")
