"""The network that a request comes from, for limits that hold for each client."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.types import Scope

# Bits of an IPv6 address that one customer of a network may have to itself: a site, a household
# with several networks, one network.
PREFIXES = (48, 56, 64)


def network(scope: Scope) -> str:
    """The client's IPv4 address, or the /64 network of its IPv6 address; "" where it is unknown."""
    return networks(scope)[-1]


def networks(scope: Scope) -> tuple[str, ...]:
    """The networks that the client is in, the largest first: the /48, /56 and /64 of an IPv6
    address; an IPv4 address stands for each."""
    client = scope.get("client")
    host = client[0] if client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return (host,) * len(PREFIXES)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if not isinstance(address, IPv6Address):
        return (str(address),) * len(PREFIXES)
    shifts = [128 - bits for bits in PREFIXES]
    return tuple(str(IPv6Address(int(address) >> shift << shift)) for shift in shifts)


def lies_in(scope: Scope, networks: Iterable[str]) -> bool:
    """True for a client whose address is one of these, or lies in one of these networks."""
    client = scope.get("client")
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in ip_network(each) for each in networks)
