"""The network that a request comes from, for limits that hold for each client."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.types import Scope

PREFIX = 64  # bits of an IPv6 address that one household or school has to itself


def network(scope: Scope) -> str:
    """The client's IPv4 address, or the /64 network of its IPv6 address; "" where it is unknown."""
    client = scope.get("client")
    host = client[0] if client else ""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> PREFIX << PREFIX))


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
