"""Servers before anybody logs in: their names, whether they take connections, their certificates."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import timedelta

from bfinfra.backends import certificate
from bfinfra.backends.kubernetes import kubeconfig
from bfinfra.doctor.ground import CheckContext
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Finding, bad, good, warning
from bfinfra.model.trust import Trust

KNOCK = 5.0  # seconds for a connect
SOON = timedelta(days=30)
Server = tuple[str, str, int, Trust]


def named(ground: CheckContext) -> list[Server]:
    """What it is in the site, host, port and trust of each server that the site names."""
    found = [("vcenter", ground.vcenter.server, ground.vcenter.settings.trust)] if ground.vcenter else []
    for key, spec in ground.of("kubernetes_cluster").items():
        try:
            access = kubeconfig.read(spec.kubeconfig, spec.context)
        except BfinfraError:
            continue  # clusters.entrance tells
        found.append((str(key), access.url.removeprefix("https://").partition("/")[0], access.trust))
    return [(what, *certificate.address(server), trust) for what, server, trust in found]


def names(ground: CheckContext) -> Iterator[Finding]:
    """The servers' names lead to addresses."""
    for what, host, port, _ in named(ground):
        if ground.seam.routed:
            continue  # the sandbox has no names: it leads addresses to its own doors
        try:
            addresses = sorted(
                {str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
            )
        except OSError as error:
            yield bad(
                f"{what} {host}",
                "its name leads nowhere",
                error.strerror or str(error),
                "correct the name, or the machine's name servers",
            )
        else:
            yield good(f"{what} {host}", f"is {', '.join(addresses)}")


def connections(ground: CheckContext) -> Iterator[Finding]:
    """The servers take connections; hosts take uploads of appliances."""
    uploads = [
        (f"{key} (takes uploads)", spec.host, 443, Trust())
        for key, spec in ground.of("bitfusion_server").items()
    ]
    for what, host, port, _ in [*named(ground), *uploads]:
        try:
            ground.seam.connect(host, port, KNOCK)
        except BfinfraError as error:
            found = error.problems[0]
            yield bad(f"{what} {host}:{port}", found.what, found.why, found.next)
        else:
            yield good(f"{what} {host}:{port}", "takes connections")


def certificates(ground: CheckContext) -> Iterator[Finding]:
    """The servers' certificates are the trusted ones, and stay good for a month."""
    for what, host, port, trust in named(ground):
        about = f"{what} {host}:{port}"
        try:
            yield judged(about, certificate.look(ground.seam, f"{host}:{port}", trust), trust, ground)
        except BfinfraError as error:
            problem = error.problems[0]
            yield bad(about, problem.what, problem.why, problem.next)


def judged(about: str, found: certificate.Shown, trust: Trust, ground: CheckContext) -> Finding:
    """What is to be said of a certificate."""
    until = f"{found.not_after:%Y-%m-%d}"
    if found.objection:
        return bad(
            about,
            "its certificate is not trusted",
            f"{found.objection}; it shows SHA-256 {found.sha256}",
            f"compare it, then: bfinfra trust {found.server}",
        )
    if found.not_after < ground.now() and not trust.sha256:
        return bad(about, f"its certificate ended on {until}", next="renew it on the server")
    if found.not_before > ground.now() and not trust.sha256:
        return bad(
            about,
            f"its certificate begins on {found.not_before:%Y-%m-%d}",
            "one of the two clocks is wrong, or it was made too early",
            "set both clocks by NTP",
        )
    if found.not_after < ground.now() + SOON:
        return warning(
            about,
            f"its certificate ends on {until}",
            "nobody gets in after that",
            "renew it on the server; a pin has to be changed with it",
        )
    return good(about, f"its certificate is trusted, until {until}")
