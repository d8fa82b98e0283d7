"""Which addresses a platform may have. Whoever controls a platform's name must not reach what only we can reach.

- Refused always: link-local (the cloud's metadata at 169.254.169.254), multicast, unspecified and reserved addresses,
  and IPv6 addresses that carry an IPv4 address (IPv4-mapped, IPv4-compatible, 6to4, Teredo, NAT64): they hide where
  they lead.
- Refused unless the platform is `internal`: loopback, private and every other address that is not on the internet, and
  ports other than 80 and 443.
- A host that ends in a number is an IPv4 address in four decimal parts, or refused: a resolver would take 2130706433,
  0x7f.1 and 0177.0.0.1 for 127.0.0.1.
"""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from httpx import URL, InvalidURL

Address = IPv4Address | IPv6Address

SCHEMES: Final = {"http": 80, "https": 443}
CARRIES_IPV4: Final = tuple(
    map(IPv6Network, ("::ffff:0:0/96", "::/96", "2002::/16", "2001::/32", "64:ff9b::/96", "64:ff9b:1::/48"))
)
"""IPv4-mapped, IPv4-compatible, 6to4 (RFC 3056), Teredo (RFC 4380), NAT64 (RFC 6052, RFC 8215)."""
_LOOPBACK_6: Final = IPv6Address("::1")
_SITE_LOCAL: Final = IPv6Network("fec0::/10")
_ENDS_IN_A_NUMBER: Final = re.compile(r"(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$", re.IGNORECASE)  # as the URL standard has it
_UNUSUAL: Final = re.compile(r"[^!-~]|[\\?#@]")


class AddressRefused(Exception):
    """The platform's name leads to an address that it may not have."""


def refused_address(address: Address, *, internal: bool) -> str | None:
    """Why a platform may not be asked at this address; None if it may."""
    always = _never(address)
    if always is not None:
        return always
    if internal or (address.is_global and not (address.version == 6 and address in _SITE_LOCAL)):
        return None
    return "a loopback address" if address.is_loopback else "a private address"


def _never(address: Address) -> str | None:
    if address.is_unspecified:
        return "the unspecified address"
    if address == _LOOPBACK_6 or (address.version == 4 and address.is_loopback):
        return None  # not `is_loopback` alone: from Python 3.13 on it is true of an IPv4-mapped address too
    if address.version == 6 and any(address in network for network in CARRIES_IPV4):
        return "an IPv6 address that carries an IPv4 address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    return "a reserved address" if address.is_reserved else None


def check_resolved(host: str, found: str, *, internal: bool) -> None:
    """Raises AddressRefused if the name leads to an address that it may not have."""
    why = refused_address(ip_address(found), internal=internal)
    if why is not None:
        raise AddressRefused(f"{host} leads to {found}, {why}")


def is_http(url: str) -> bool:
    """Whether it has one of the two schemes, and a host."""
    try:
        parts = URL(url)
    except InvalidURL:
        return False
    return parts.scheme in SCHEMES and bool(parts.raw_host)


def refused_url(url: str, *, internal: bool) -> str | None:
    """Why a platform may not have this base URL; None if it may. What its name leads to is not known here."""
    if not is_http(url):
        return "it is not an http:// or https:// address"
    parts = URL(url)
    host = parts.raw_host.decode("ascii")
    if _UNUSUAL.search(url):
        return "it has a user name, a query, a fragment, a backslash or other characters than visible ASCII"
    if not internal and parts.port not in {None, *SCHEMES.values()}:
        return "its port is not 80 or 443"
    return _refused_host(host, internal=internal)


def _refused_host(host: str, *, internal: bool) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        return (
            "its host is a number in another form than four decimal parts" if _ENDS_IN_A_NUMBER.search(host) else None
        )
    why = refused_address(address, internal=internal)
    return None if why is None else f"its host is {why}"
