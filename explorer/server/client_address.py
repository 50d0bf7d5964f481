"""The network that a request comes from, for limits that hold for each client."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

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
