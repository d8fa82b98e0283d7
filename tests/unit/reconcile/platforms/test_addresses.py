"""Where platforms may be: every form of an internal address that a URL or a resolver can give."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.reconcile.platforms.addresses import refused_address, refused_url

INTERNAL = [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "fd00::1",
    "192.0.2.1",
]
NEVER = [
    "169.254.169.254", "fe80::1", "fe80::1%2", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1",
    "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "2002:7f00:1::", "2001:0:7f00:1::", "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:2800:220:1::1"]


@pytest.mark.parametrize("address", INTERNAL)
def test_an_internal_address_needs_a_platform_that_is_internal(address):
    assert refused_address(ip_address(address), internal=False) is not None
    assert refused_address(ip_address(address), internal=True) is None


@pytest.mark.parametrize("address", [*NEVER, "fec0::1"])
def test_others_are_refused(address):
    assert refused_address(ip_address(address), internal=False) is not None


@pytest.mark.parametrize("address", NEVER)
def test_some_are_refused_even_then(address):
    assert refused_address(ip_address(address), internal=True) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_the_internet_is_allowed(address):
    assert refused_address(ip_address(address), internal=False) is None


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_is_allowed_is_on_the_internet_and_nothing_hides_in_it(address):
    if refused_address(address, internal=False) is None:
        assert address.is_global
        kinds = [address.is_private, address.is_loopback, address.is_link_local, address.is_multicast]
        assert not any(kinds)


@given(st.ip_addresses(v=4))
def test_no_ipv6_form_of_an_ipv4_address_is_allowed(inner: IPv4Address):
    number = int(inner)
    forms = [number, 0xFFFF << 32 | number, 0x2002 << 112 | number << 80, 0x64FF9B << 96 | number]
    for form in forms:
        assert refused_address(IPv6Address(form), internal=False) is not None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.1", "127.1", "127.0.0.1.", "0", "1.2.3", "[::1]",
        "[::ffff:127.0.0.1]", "[fe80::1]", "169.254.169.254", "platform.0x1", "\uff11\uff12\uff17.0.0.1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_that_is_an_internal_address_in_any_form_is_refused(scheme, host):
    assert refused_url(f"{scheme}://{host}/v1", internal=False) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://ada@platform.example", "https://ada:b@platform.example", "https://platform.example@127.0.0.1",
        "https://platform.example:22", "https://platform.example:8443", "https://platform.example\\@127.0.0.1",
        "https://platform.example/?u=", "https://platform.example/#", "https://platform.example/\u00e9",
        "https://platform.example/ x",
    ],
)  # fmt: skip
def test_what_a_base_url_never_has_is_refused(url):
    assert refused_url(url, internal=False) is not None


@pytest.mark.parametrize(
    "url", ["https://platform.example", "http://platform.example:80/api/", "https://8.8.8.8", "https://x1.v2:443"]
)
def test_an_ordinary_base_url_is_allowed(url):
    assert refused_url(url, internal=False) is None


def test_an_internal_platform_may_have_any_port_and_never_another_form():
    assert refused_url("http://127.0.0.1:8090/clipshare", internal=True) is None
    assert refused_url("http://2130706433:8090", internal=True) is not None
    assert refused_url("http://169.254.169.254", internal=True) is not None
