"""The network that a request comes from, for limits that hold for each client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

# Bits of an IPv6 address that one customer of a network may have to itself: a site, a household
# with several networks, one network.
PREFIXES = (48, 56, 64)


MAPPED, MAPPED_BITS = "::ffff:", 96  # before an IPv4 address on a socket of both kinds


WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d*)?|([^:]*):\d*")


def plain(host: str) -> str:
    """An address as it is compared, however it is written, with a port or without; what is none as
    it is."""
    match = WITH_PORT.fullmatch(host)
    try:
        address = ip_address(((match[1] or match[2] or "") if match else host).partition("%")[0])
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def trusted_proxies(listed: str) -> list[str] | str:
    """Addresses and networks whose X-Forwarded-For is believed, and how they look on a socket of
    both kinds. listed: with commas between; "*" for all."""
    if listed.strip() == "*":
        return "*"
    trusted = [each.strip() for each in listed.split(",")]
    for each in (*trusted,):
        host, slash, bits = each.partition("/")
        if ":" not in host:
            prefix = f"/{int(bits) + MAPPED_BITS}" if bits.isdecimal() else slash + bits
            trusted.append(f"{MAPPED}{host}{prefix}")
    return trusted


class ClientAddress:
    """The address of each request's client as it is compared. uvicorn believes the proxies that
    FORWARDED_ALLOW_IPS names, those of this machine by itself, but not where a socket of both kinds
    calls them otherwise; this does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        trusted = trusted_proxies(os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1"))
        self._behind_proxies = ProxyHeadersMiddleware(self._plainly, trusted)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._behind_proxies(scope, receive, send)  # type: ignore[arg-type]

    async def _plainly(self, scope: Scope, receive: Receive, send: Send) -> None:
        if client := scope.get("client"):
            scope["client"] = (plain(client[0]), client[1])
        await self.app(scope, receive, send)


def network(scope: Scope) -> str:
    """The client's IPv4 address, or the /48 network of its IPv6 address, which one customer may
    have to itself; "" where it is unknown."""
    return networks(scope)[0]


def networks(scope: Scope) -> tuple[str, ...]:
    """The networks that the client is in, the largest first: the /48, /56 and /64 of an IPv6
    address; an IPv4 address stands for each."""
    client = scope.get("client")
    host = plain(client[0]) if client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return (host,) * len(PREFIXES)
    if not isinstance(address, IPv6Address):
        return (str(address),) * len(PREFIXES)
    shifts = [128 - bits for bits in PREFIXES]
    return tuple(str(IPv6Address(int(address) >> shift << shift)) for shift in shifts)


def lies_in(scope: Scope, networks: Iterable[str]) -> bool:
    """True for a client whose address is one of these, or lies in one of these networks."""
    client = scope.get("client")
    try:
        address = ip_address(plain(client[0]) if client else "")
    except ValueError:
        return False
    return any(address in _plain_network(each) for each in networks)


def _plain_network(written: str) -> IPv4Network | IPv6Network:
    network = ip_network(written)
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is None or network.prefixlen < MAPPED_BITS:
        return network
    return IPv4Network((mapped, network.prefixlen - MAPPED_BITS))
