"""Assigns the GPUs of a host to its servers, and sizes servers for them. Each card goes to one server, and
every server computes the same assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bfinfra.backends.vcenter.vm import Attach
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import State
from bfinfra.kinds.vcenter.gpu_host.cards import Gpu, chosen, ours
from bfinfra.kinds.vcenter.gpu_host.state import State as HostState
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.gpus import GIB, MEMORY, vgpu_profile
from bfinfra.model.siblings import Siblings
from bfinfra.model.suggest import few, nearest
from bfinfra.model.units import GRAIN

PER_GPU = 4  # virtual CPUs
Servers = Mapping[str, tuple[Spec, State | None]]
Given = tuple[tuple[Gpu, ...], Mapping[str, tuple[Gpu, ...]]]
"""A host's cards, and which server has which of them."""


def assign(
    name: str, spec: Spec, state: State | None, context: PlanContext
) -> tuple[tuple[Attach, ...], int | None]:
    """The devices to attach, and the sum of their memory in bytes (None: not known)."""
    host = context.needs["host"]
    if spec.attach == "vgpu":
        return _vgpu(spec, host.state)
    cards, given = _alike(name, spec, state, context)
    own_gpus = given.get(name, ())
    if len(own_gpus) < spec.gpus:
        raise _too_many(name, spec, cards, given, host.state)
    memory = _sum(spec.gpu_memory or gpu.memory for gpu in own_gpus)
    if spec.attach == "dynamic":
        return tuple(Attach(vendor=g.vendor, device=g.device, name=g.name) for g in own_gpus), memory
    return tuple(
        Attach(vendor=g.vendor, device=g.device, address=g.address, name=g.name) for g in own_gpus
    ), memory


def _alike(name: str, spec: Spec, state: State | None, context: PlanContext) -> Given:
    """The host's cards and their assignment. The result is cached for all servers of the host whose spec and
    state are the ones that their siblings see.
    """
    host, siblings = context.needs["host"].state, context.siblings
    if (
        isinstance(siblings, Siblings)
        and siblings.own[0] is spec
        and siblings.own[1] is state
        and not _adopting(state, host, context.mark.site)
    ):
        return siblings.once(
            ("gpus", spec.host, id(context.facts)),
            lambda: (context.facts, _given(name, spec, state, context)),
        )[1]  # the cache keeps the facts, too, so that their id is not reused
    return _given(name, spec, state, context)


def _adopting(state: State | None, host: HostState, site: str) -> bool:
    return state is not None and any(
        h.moid == state.machine.moid and not ours(h, site) for h in host.detail.holders
    )


def _given(name: str, spec: Spec, state: State | None, context: PlanContext) -> Given:
    host = context.needs["host"]
    cards = _cards(state, host, context) if host.spec is not None else ()
    servers = {
        n: (s, t)
        for n, (s, t) in context.sharing("host").items()
        if s is not None and s.host == spec.host and s.attach != "vgpu"
    }
    servers[name] = (spec, state)
    return cards, _share(cards, servers, _elsewhere(host.state, context, state))


def _cards(state: State | None, host: ResolvedRef, context: PlanContext) -> tuple[Gpu, ...]:
    """The host's cards. A VM that is being adopted counts as this site's, so its cards do, too."""
    detail = host.state.detail
    host_state = host.state
    if state and _adopting(state, host_state, context.mark.site):
        own = [
            replace(h, mark=context.mark.encode()) if h.moid == state.machine.moid else h
            for h in detail.holders
        ]
        host_state = replace(host_state, detail=replace(detail, holders=tuple(own)))
    try:
        return chosen(host.spec, host_state, context.mark.site, context.siblings)
    except Refusal as refusal:
        problem = refusal.problems[0]
        raise Refusal(
            f"{host.key} does not have the cards that it should pass through",
            field="host",
            why="; ".join(part for part in (problem.what, problem.why) if part),
            next=f"correct {host.key} first",
        ) from None


def _too_many(
    name: str, spec: Spec, cards: tuple[Gpu, ...], given: Mapping[str, tuple[Gpu, ...]], host: HostState
) -> Refusal:
    others = [f"bitfusion_server/{n} takes {len(g)}" for n, g in sorted(given.items()) if n != name and g]
    taken = {gpu.address for each in given.values() for gpu in each}
    held = [
        f"the VM {h.name} holds {a}"
        for h in host.detail.holders
        for a in h.addresses
        if a in {c.address for c in cards} - taken
    ]
    left = {0: "none is", 1: "only 1 is"}.get(
        len(given.get(name, ())), f"only {len(given.get(name, ()))} are"
    )
    return Refusal(
        f"it needs {spec.gpus} GPU{'' if spec.gpus == 1 else 's'}, and {left} to be had on {spec.host}",
        field="gpus",
        why="; ".join(
            [
                f"gpu_host/{spec.host} passes {len(cards)} through",
                *([few(others)] if others else []),
                *([few(held)] if held else []),
            ]
        ),
        next="lower gpus, or pass more cards through",
    )


def _vgpu(spec: Spec, host: HostState) -> tuple[tuple[Attach, ...], int | None]:
    profile = spec.vgpu_profile or ""
    if profile not in host.detail.vgpu_profiles:
        raise Refusal(
            f"{spec.host} offers no vGPU profile {profile}",
            field="vgpu_profile",
            next=nearest(profile, host.detail.vgpu_profiles)
            or "set the host's graphics type to shared direct and install the vGPU manager",
        )
    each = spec.gpu_memory or of_profile(profile)
    return (Attach(profile=profile),) * spec.gpus, _sum([each] * spec.gpus)


def _sum(sizes: Iterable[int | None]) -> int | None:
    listed = list(sizes)
    return None if None in listed else sum(size or 0 for size in listed)


def _elsewhere(host: HostState, context: PlanContext, state: State | None) -> set[str]:
    """Addresses of cards held by VMs that are not servers of this site. Cards of a server that will be
    deleted count as free.
    """
    servers = {t.machine.moid for _, t in context.sharing("host").values() if t is not None} | (
        {state.machine.moid} if state else set()
    )
    return {a for h in host.detail.holders if h.moid not in servers | context.facts.gone for a in h.addresses}


def _share(cards: tuple[Gpu, ...], servers: Servers, taken: set[str]) -> dict[str, tuple[Gpu, ...]]:
    """The cards of each server. A server keeps what it has. Free cards go to static servers before dynamic
    ones, to existing servers before new ones, then by name, lowest address first.
    """
    given: dict[str, tuple[Gpu, ...]] = {}
    free = {gpu.address: gpu for gpu in cards if gpu.address not in taken}
    for name, (spec, state) in sorted(servers.items()):
        held = (
            {a.address for a in state.machine.pci if a.way == "static"}
            if state and spec.attach == "static"
            else set()
        )
        given[name] = tuple(free.pop(a) for a in sorted(held & free.keys())[: spec.gpus])
    servers_in_order = sorted(
        servers, key=lambda n: (servers[n][0].attach != "static", servers[n][1] is None, n)
    )
    for name in servers_in_order:
        spec = servers[name][0]
        usable = _one_make(free) if spec.attach == "dynamic" else sorted(free)
        more = usable[: max(0, spec.gpus - len(given[name]))]
        given[name] += tuple(free.pop(address) for address in more)
    return given


def _one_make(free: Mapping[str, Gpu]) -> list[str]:
    """The addresses of the cards of the most frequent model: all cards of a dynamic server are of one
    model.
    """
    managed = Counter((gpu.vendor, gpu.device) for gpu in free.values())
    if not managed:
        return []
    best = min(managed, key=lambda make: (-managed[make], make))
    return sorted(address for address, gpu in free.items() if (gpu.vendor, gpu.device) == best)


def cpus_for(gpus: int) -> int:
    """Four CPUs per GPU, at least four."""
    return max(PER_GPU, PER_GPU * gpus)


def memory_for(gpu_memory: int) -> int:
    """One and a half times the GPUs' memory, rounded as vSphere needs it."""
    wanted = gpu_memory * 3 // 2
    return -(-wanted // GRAIN) * GRAIN


def mmio_for(gpu_memory: int) -> int:
    """Twice the next power of two (in GiB) that holds the GPUs' memory."""
    gib = max(1, -(-gpu_memory // GIB))
    return 2 * (1 << (gib - 1).bit_length()) * GIB


def of_profile(profile: str) -> int | None:
    """The memory of a vGPU of a profile; None if its name gives none."""
    found = vgpu_profile(profile)
    return found.memory if found else None


def of_cards(passed: Iterable[object]) -> int:
    """The smallest memory of a card that a host passes through, in bytes; 0 if one is not known."""
    known = [
        getattr(each, "memory", None)
        or MEMORY.get((getattr(each, "vendor", None) or 0, getattr(each, "device", None) or 0), 0)
        for each in passed
    ]
    return min(known, default=0)
