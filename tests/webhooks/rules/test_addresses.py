"""Which URLs an endpoint may have, and which addresses may be connected to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.rules.addresses import AddressPolicy, UrlNotAllowed, blocked_reason, check_url

PUBLIC = AddressPolicy()
HTTP = AddressPolicy(allow_http=True)
LOOPBACK = AddressPolicy(True, (ip_network("127.0.0.0/8"), ip_network("::1/128")))


@pytest.mark.parametrize(
    ("url", "normal", "host_header"),
    [
        ("https://Receiver.Example", "https://receiver.example/", "receiver.example"),
        ("HTTPS://receiver.example:443/a", "https://receiver.example/a", "receiver.example"),
        (
            "https://receiver.example.:8443",
            "https://receiver.example:8443/",
            "receiver.example:8443",
        ),
        ("https://receiver.example?a=b", "https://receiver.example/?a=b", "receiver.example"),
        ("https://receiver.example/?", "https://receiver.example/?", "receiver.example"),
        ("https://x.example/ü?q=é", "https://x.example/%C3%BC?q=%C3%A9", "x.example"),
        ("https://x.example/a%2Fb/../c", "https://x.example/a%2Fb/../c", "x.example"),
        ('https://x.example/<"{}|>', "https://x.example/%3C%22%7B%7D%7C%3E", "x.example"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://my_service.example/", "https://my_service.example/", "my_service.example"),
        ("https://8.8.8.8:444/", "https://8.8.8.8:444/", "8.8.8.8:444"),
        ("https://[2606:4700:0::1]:444", "https://[2606:4700::1]:444/", "[2606:4700::1]:444"),
    ],
)
def test_a_url_is_normalised_once(url: str, normal: str, host_header: str) -> None:
    target = check_url(url, PUBLIC)
    assert (target.url, target.host_header) == (normal, host_header)
    assert check_url(normal, PUBLIC) == target


def test_the_parts_of_a_target() -> None:
    target = check_url("https://receiver.example:8443/a?b=c", PUBLIC)
    assert (target.scheme, target.host, target.port) == ("https", "receiver.example", 8443)
    assert (target.target, target.literal) == ("/a?b=c", None)
    assert check_url("https://[2606:4700::1]/", PUBLIC).literal == IPv6Address("2606:4700::1")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://receiver.example/", "Plain http is not allowed"),
        ("ftp://receiver.example/", "must start with https://"),
        ("file:///etc/passwd", "must start with https://"),
        ("receiver.example", "must start with https://"),
        ("//receiver.example/", "must start with https://"),
        ("", "must start with https://"),
        ("https://", "malformed"),
        ("https:///path", "malformed"),
        ("https:receiver.example", "malformed"),
        ("https://:443/", "malformed"),
        ("https://receiver.example:/", "malformed"),
        ("https://receiver.example:443:443/", "malformed"),
        ("https://receiver.example:44a/", "malformed"),
        ("https://receiver.example:+443/", "malformed"),
        ("https://receiver.example:4٤/", "malformed"),
        ("https://receiver.example:0/", "between 1 and 65535"),
        ("https://receiver.example:65536/", "between 1 and 65535"),
        ("https://receiver.example:25/", "another protocol"),
        ("https://receiver.example:22/", "another protocol"),
        ("https://u:p@receiver.example/", "Remove the user name"),
        ("https://@receiver.example/", "Remove the user name"),
        ("https://receiver.example/#a", "fragment"),
        ("https://receiver.example/#", "fragment"),
        ("https://receiver.example/a b", "space"),
        (" https://receiver.example/", "space"),
        ("https://receiver.example/\n", "space"),
        ("https://receiver.example/\r\nHost: x", "space"),
        ("https://receiver.example\\@other.example/", "backslash"),
        ("https://receiver.example/\x00", "control"),
        ("https://receiver.example/\u202e", "control"),
        ("https://receiver.example/\ud800", "control"),
        ("https://receiver.example/\u00a0", "space"),
        ("https://receiver.example/100%", "%25"),
        ("https://receiver.example/%zz", "%25"),
        ("https://receiver.example/" + "a" * 2048, "longer than 2048"),
        ("https://receiver.example/" + "é" * 500, "longer than 2048"),
        ("https://a..example/", "host name is malformed"),
        ("https://.example/", "host name is malformed"),
        ("https://./", "host name is malformed"),
        ("https://-a.example/", "host name is malformed"),
        ("https://a-.example/", "host name is malformed"),
        ("https://a%2eexample/", "host name is malformed"),
        ("https://a,b.example/", "host name is malformed"),
        (f"https://{'a' * 64}.example/", "host name is malformed"),
        (f"https://{'a.' * 127}example/", "host name is malformed"),
        ("https://straße.example/", "ASCII form"),
        ("https://receiver℀.example/", "malformed"),
        ("https://[::1/", "malformed"),
        ("https://[1::2::3]/", "malformed"),
        ("https://[fe80::1%25eth0]/", "malformed"),
        ("https://[2606:4700::1]x/", "malformed"),
        ("https://2606:4700::1/", "malformed"),
    ],
)
def test_a_url_that_is_refused_says_what_to_do(url: str, words: str) -> None:
    with pytest.raises(UrlNotAllowed) as refusal:
        check_url(url, PUBLIC)
    assert words in refusal.value.reason


def test_plain_http_is_a_setting() -> None:
    assert check_url("http://receiver.example/", HTTP).port == 80


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@receiver.example/",
        "https://user:hunter2@[::1/",
        "https://user:hunter2\\@receiver.example/",
        "https://user:hunter2@receiver.example:99999/#",
    ],
)
def test_a_refusal_never_repeats_a_password(url: str) -> None:
    with pytest.raises(UrlNotAllowed) as refusal:
        check_url(url, PUBLIC)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.0.0.1.0x",
        "1.2.3.4.5",
        "999.0.0.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "169.254.169.254",
        "0.0.0.0",
    ],
)
def test_no_spelling_of_an_internal_address_passes(host: str) -> None:
    with pytest.raises(UrlNotAllowed):
        check_url(f"https://{host}/", PUBLIC)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "127.9.9.9"])
def test_listed_networks_pass(host: str) -> None:
    assert check_url(f"http://{host}/", LOOPBACK)


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_is_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://receiver.example/{text}"):
        try:
            target = check_url(url, HTTP)
        except UrlNotAllowed:
            continue
        assert check_url(target.url, HTTP) == target
        assert target.url.isascii()
        assert target.url.isprintable()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("0.0.0.0", "this host"),
        ("0.1.2.3", "this host"),
        ("10.0.0.1", "private"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.169.254", "link-local"),
        ("169.254.170.2", "link-local"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.8", "protocols"),
        ("192.0.0.170", "protocols"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarks"),
        ("198.19.255.255", "benchmarks"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::2", "IPv4-compatible"),
        ("::127.0.0.1", "IPv4-compatible form of 127.0.0.1"),
        ("::ffff:10.0.0.1", "IPv4-mapped form of 10.0.0.1"),
        ("::ffff:8.8.8.8", "IPv4-mapped form of 8.8.8.8"),
        ("::ffff:0:10.0.0.1", "IPv4-translated form of 10.0.0.1"),
        ("64:ff9b::10.0.0.1", "NAT64 form of 10.0.0.1"),
        ("64:ff9b:1::10.0.0.1", "local NAT64"),
        ("64:ff9b:1::8.8.8.8", "local NAT64"),
        ("2002:a00:1::1", "6to4 form of 10.0.0.1"),
        ("2002:808:808::1", "6to4 form of 8.8.8.8"),
        ("2001:0:1:2:3:4:f5ff:fffe", "Teredo form of 10.0.0.1"),
        ("100::1", "discard"),
        ("2001:2::1", "benchmarks"),
        ("2001:10::1", "ORCHID"),
        ("2001:20::1", "ORCHID"),
        ("2001:1::1", "protocols"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("3ffe::1", "given up"),
        ("5f00::1", "segment routing"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("4000::1", "not a public address"),
        ("1000::1", "not a public address"),
        ("localhost", "not an IP address"),
        ("", "not an IP address"),
    ],
)
def test_an_address_that_is_not_public_is_blocked(address: str, words: str) -> None:
    assert words in (blocked_reason(address, PUBLIC) or "")


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2a00::1",
        "64:ff9b::8.8.8.8",
    ],
)
def test_a_public_address_passes(address: str) -> None:
    assert blocked_reason(address, PUBLIC) is None


@pytest.mark.parametrize(
    ("network", "allowed", "still_blocked"),
    [
        ("127.0.0.0/8", "127.0.0.1", "10.0.0.1"),
        ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ("10.1.0.0/16", "10.1.2.3", "10.2.0.1"),
        ("10.1.0.0/16", "64:ff9b::10.1.2.3", "64:ff9b::10.2.0.1"),
        ("fd00::/8", "fd12::1", "fc00::1"),
        ("::1/128", "::1", "127.0.0.1"),
    ],
)
def test_a_listed_network_is_allowed_and_no_other(
    network: str, allowed: str, still_blocked: str
) -> None:
    policy = AddressPolicy(allowed_networks=(ip_network(network),))
    assert blocked_reason(allowed, policy) is None
    assert blocked_reason(still_blocked, policy)


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_address_is_stricter_in_the_standard_library(number: int) -> None:
    address = IPv4Address(number)
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        assert blocked_reason(address, PUBLIC)


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_is_stricter_in_the_standard_library(address: IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_site_local:
        assert blocked_reason(address, PUBLIC)
