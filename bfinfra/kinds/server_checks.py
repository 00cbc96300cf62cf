"""Checks of servers before a login: names, connections, certificates."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from bfinfra.formats.shell import word
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.trust import Server, Trust

if TYPE_CHECKING:
    from bfinfra.backends.certificate import Shown
    from bfinfra.kinds.checks import CheckContext

CONNECT = 5.0  # seconds to wait for a connection
SOON = timedelta(days=30)
SKEW = 60  # seconds
Check = Callable[["CheckContext"], Iterable[Finding]]


def server_checks(servers: Callable[[CheckContext], Iterable[Server]]) -> Mapping[str, Check]:
    """The checks of the servers that the site names."""

    def names(context: CheckContext) -> Iterator[Finding]:
        """A finding per server: whether its name has addresses."""
        if not context.transport.routed:  # the sandbox has no DNS: it maps names to its own ports
            yield from map(named, servers(context))

    def connections(context: CheckContext) -> Iterator[Finding]:
        """A finding per server: whether it accepts connections."""
        for each in servers(context):
            yield connected(context, each)

    def certificates(context: CheckContext) -> Iterator[Finding]:
        """A finding per server: whether its certificate is trusted, and good for a month."""
        for each in servers(context):
            yield certified(context, each, f"{each.what} {each.address}")

    return {"servers.names": names, "servers.connections": connections, "servers.certificates": certificates}


def named(server: Server) -> Finding:
    """Return whether a server's name has addresses."""
    about = f"{server.what} {server.host}"
    try:
        addresses = sorted(
            {
                str(each[4][0])
                for each in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
            }
        )
    except OSError as error:
        return bad(
            about,
            "its name has no address",
            error.strerror or str(error),
            "correct the name, or the machine's name servers",
        )
    return good(about, f"is {', '.join(addresses)}")


def connected(context: CheckContext, server: Server) -> Finding:
    """Return whether a server accepts connections."""
    about = f"{server.what} {server.host}:{server.port}"
    try:
        context.transport.connect(server.host, server.port, CONNECT)
    except BfinfraError as error:
        found = error.problems[0]
        return bad(about, found.what, found.why, found.next)
    return good(about, "takes connections")


def certified(context: CheckContext, server: Server, about: str) -> Finding:
    """Return whether a server's certificate is trusted, and for how long."""
    try:
        return _judged(about, context.look(server), server.trust, context)
    except BfinfraError as error:
        problem = error.problems[0]
        return bad(about, problem.what, problem.why, problem.next)


def _judged(about: str, found: Shown, trust: Trust, context: CheckContext) -> Finding:
    """The finding about a certificate."""
    until = f"{found.not_after:%Y-%m-%d}"
    if found.objection:
        return bad(
            about,
            "its certificate is not trusted",
            f"{found.objection}; it shows SHA-256 {found.sha256}",
            f"compare it, then: bfinfra trust {word(found.server)}",
        )
    if found.not_after < context.now() and not trust.sha256:
        return bad(about, f"its certificate ended on {until}", next="renew it on the server")
    if found.not_before > context.now() and not trust.sha256:
        return bad(
            about,
            f"its certificate begins on {found.not_before:%Y-%m-%d}",
            "one of the two clocks is wrong, or the certificate is not valid yet",
            "set both clocks by NTP",
        )
    if found.not_after < context.now() + SOON:
        return warning(
            about,
            f"its certificate ends on {until}",
            "after that nobody can connect",
            "renew it on the server; a pin has to be changed with it",
        )
    return good(about, f"its certificate is trusted, until {until}")


def skew(about: str, off: float) -> Finding:
    """The finding about a server's clock, `off` seconds from this machine's."""
    if abs(off) <= SKEW:
        return good(about, f"its clock is {abs(off):.0f} s {'ahead' if off > 0 else 'behind'}")
    return warning(
        about,
        f"its clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} ours",
        "certificates and tokens may count as not yet or no longer valid",
        "set both clocks by NTP",
    )
