"""Checks for what would stop an apply on Linux machines: logins, and connections between machines and to
other addresses in the site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Blocked, Finding, Health, bad, good
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.backends.ansible import Answer
    from bfinfra.kinds.checks import CheckContext

TIMEOUT = 3  # seconds to wait for a connection
CONNECT = 'exec 3<>"/dev/tcp/$1/$2"'
Way = tuple[str, int]
"""Address and TCP port."""


def entrance(context: CheckContext) -> Iterator[Finding]:
    """A finding per machine: whether the account can log in. Skips machines that the site has still to create
    as VMs.
    """
    found = _asked(context, {name: {"who": ("id", "-un")} for name in _machines(context)})
    for name, answer in found.items():
        key = Key("linux_host", name)
        if isinstance(answer, Blocked):
            yield Finding(str(key), Health.SKIPPED, "whether the account can log in", answer.why)
        elif isinstance(answer, BfinfraError):
            yield from (bad(key, each.what, each.why, each.next) for each in answer.problems)
        else:
            yield good(key, f"the account can log in, as {answer['who'].text.strip()}")


def ports(context: CheckContext) -> Iterator[Finding]:
    """A finding per machine: whether it reaches the machines and servers that its software needs, such as the
    nodes of its cluster and the license server of vGPUs.
    """
    wanted = ways(context.site.resources)
    found = _asked(
        context,
        {
            name: {f"{address}:{port}": connect(address, port) for address, port in each}
            for name, each in wanted.items()
        },
    )
    for name, answers in found.items():
        if not isinstance(answers, BfinfraError | Blocked):  # `entrance` reports it
            yield judged(Key("linux_host", name), answers)


def ways(resources: Specs) -> dict[str, tuple[Way, ...]]:
    """By machine: what it has to reach, by the specs that name it. Pure."""
    addresses = {key.name: spec.address for key, spec in resources.items() if key.kind == "linux_host"}
    found: dict[str, dict[Way, None]] = {}
    for spec in resources.values():
        for host, each in spec.ways(addresses):
            found.setdefault(host, {})[each] = None
    return {host: tuple(each) for host, each in found.items() if host in addresses}


def connect(address: str, port: int) -> tuple[str, ...]:
    """The command that connects and disconnects. It reads and writes nothing."""
    return ("timeout", str(TIMEOUT), "bash", "-c", CONNECT, "bash", address, str(port))


def _last_words(answer: Answer) -> str:
    return " ".join(answer.text.split())[-160:] or str(answer.code)


def judged(about: Key, answers: Mapping[str, Answer]) -> Finding:
    """The finding for a machine. A refused connection counts as reachable: before an apply nothing listens
    yet.
    """
    refused = [where for where, answer in answers.items() if not answer.ok and "refused" in answer.text]
    closed = {where: answer for where, answer in answers.items() if not answer.ok and where not in refused}
    if closed:
        why = "; ".join(
            f"{where}: {'no answer' if answer.code == 124 else _last_words(answer)}"
            for where, answer in closed.items()
        )
        return bad(
            about,
            f"it does not reach {', '.join(closed)}",
            why,
            "open these TCP ports in the firewalls between them, and check the routes",
        )
    silent = f"; nothing listens yet at {', '.join(refused)}" if refused else ""
    return good(about, f"it reaches {', '.join(answers)}{silent}")


def _machines(context: CheckContext) -> dict[str, LinuxMachine]:
    return {key.name: spec.machine(key.name) for key, spec in context.of("linux_host").items()}


def _asked(
    context: CheckContext, commands: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> dict[str, Mapping[str, Answer] | BfinfraError | Blocked]:
    """The answers of one command per machine, run in parallel; Blocked for a VM of this site that doesn't
    exist yet.
    """
    machines, running = _machines(context), _running(context)
    found: dict[str, Mapping[str, Answer] | BfinfraError | Blocked] = {}
    for name in commands:
        vm = context.site.resources[Key("linux_host", name)].vm
        if vm is not None and vm not in running:
            found[name] = Blocked(name, f"virtual_machine/{vm} does not run yet: apply creates it")
    asked = {machines[name]: each for name, each in commands.items() if name not in found}
    hosts = context.linux() if asked else None
    answers = hosts.read(asked) if hosts is not None else {}
    return {**found, **{machine.name: answer for machine, answer in answers.items()}}


def _running(context: CheckContext) -> frozenset[str]:
    """Names of the VMs that run. Asks vCenter only if a machine is a VM of the site."""
    if context.vcenter is None or not any(spec.vm for spec in context.of("linux_host").values()):
        return frozenset()
    machines = context.entered().machines
    wanted = {key.name for key in context.of("virtual_machine")}
    moids = [each.moid for each in machines.survey("bfinfra.mark") if each.name in wanted]
    return frozenset(each.name for each in machines.read(moids, []) if each.on)


CHECKS = {"machines.entrance": entrance, "machines.ports": ports}
