"""The steps from the live state to the desired one: which passthrough to set, whether to reboot, what to
restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from bfinfra.kinds.named import nowhere
from bfinfra.kinds.vcenter.base.begun import Begun, wait_for
from bfinfra.kinds.vcenter.gpu_host.cards import chosen, ours
from bfinfra.kinds.vcenter.gpu_host.spec import Spec
from bfinfra.kinds.vcenter.gpu_host.state import IN_EFFECT, GpuHostFacts, GpuHostNote, State
from bfinfra.kinds.vcenter.gpu_host.steps import Await, Commit, Forget, Leave, Reboot, Set, ShutDown
from bfinfra.model import compare
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest

Changes = tuple[Change, ...]
Cards = Mapping[str, bool]  # PCI address → whether passthrough is on


def absent(name: str, spec: Spec | None, facts: GpuHostFacts) -> Sequence[Step]:
    """No steps; raises Refusal if the site has a host that doesn't exist, as bfinfra can't create hosts."""
    if spec is None:
        return ()
    raise Refusal(f"there is no host {name}", why="vCenter doesn't know it", next=nearest(name, facts.hosts))


def check_cluster(spec: Spec, state: State, facts: GpuHostFacts) -> None:
    """Raises Refusal if the host isn't in the cluster that the site names."""
    if not spec.cluster:
        return
    if spec.cluster not in facts.clusters:
        raise nowhere("cluster", spec.cluster, "cluster", facts.clusters)
    if facts.clusters[spec.cluster] != state.detail.cluster:
        raise Refusal(
            f"the host is not in the cluster {spec.cluster}",
            field="cluster",
            why=f"it is in {state.cluster}",
            next=f"write {state.cluster}, or leave it out",
        )


def manage(
    name: str, spec: Spec, state: State, mark: Mark, machines: frozenset[str] = frozenset()
) -> Sequence[Step]:
    """The steps: finish a reboot that was started, set passthrough, reboot if that is needed and allowed,
    note what was applied. `machines`: names of VMs that the site describes.
    """
    cards = [gpu.address for gpu in chosen(spec, state, mark.site, machines)]
    wanted = dict.fromkeys(cards, True) | {
        a: on for a, on in state.before.items() if a not in cards and state.device(a)
    }
    found = compare.changes(spec, state.mark, drift(wanted, state, spec.reboot == "if_needed"))
    steps = _effects(name, state, wanted, mark, found, spec)
    if state.mark is None or state.mark.applied != spec.applied():
        noted = "" if state.reboot == IN_EFFECT else state.reboot
        steps.append(
            Commit(
                name=name,
                moid=state.detail.moid,
                note=replace(_note(state, mark), mark=mark.committed(spec.applied()), reboot=noted).encode(),
                changes=found,
            )
        )
    return steps


def release(name: str, state: State, mark: Mark) -> Sequence[Step]:
    """The steps: restore the earlier passthrough, then remove the notes."""
    wanted = {a: on for a, on in state.before.items() if state.device(a)}
    unmanaged = tuple(
        h for h in state.detail.holders if not ours(h, mark.site)
    )  # this site's servers are deleted before their host
    state = replace(state, detail=replace(state.detail, holders=unmanaged))
    for address, holder in product(_unset(wanted, state), unmanaged):
        if address in holder.addresses:
            raise Refusal(
                f"passthrough of {address} can't be put back",
                why=f"the VM {holder.name} uses the card",
                next="delete that VM first",
            )
    applied = state.mark.applied if state.mark else None
    allowed = (
        {"reboot": "if_needed" if state.reboot or state.begun else "never"} if applied is None else applied
    )  # an apply that was killed may have rebooted without noting that the site allows it
    spec = Spec(reboot=allowed.get("reboot", "never"))
    found = tuple(drift(wanted, state, spec.reboot == "if_needed"))
    kept = state.mark or mark  # the committed mark contains whether a reboot is allowed
    steps = _effects(name, state, wanted, kept, found, spec)
    if state.rebooting:
        steps += _effects(name, state.after_reboot, wanted, kept, found, spec)
    owed = spec.reboot == "never" and any(_active(state, a) != on for a, on in wanted.items())
    return [
        *steps,
        Forget(name=name, moid=state.detail.moid, owed=" (a reboot of the host is owed)" if owed else ""),
    ]


def drift(wanted: Cards, state: State, reboots: bool) -> list[Change]:
    """The devices that aren't set as in the site. If `reboots`, also those that are set but not in effect
    yet.
    """
    unset = _unset(wanted, state)
    found = [
        Change(f"passthrough.{a}", "off" if wanted[a] else "on", "on" if wanted[a] else "off") for a in unset
    ]
    if reboots and not state.rebooted_in_vain:
        found += [
            Change(f"passthrough.{a}.active", not on, on)
            for a, on in wanted.items()
            if a not in unset and _active(state, a) != on
        ]
    return found


def owed(spec: Spec, state: State, machines: frozenset[str] = frozenset()) -> list[str]:
    """The cards whose passthrough is set but not in effect. `machines`: names of VMs that the
    site describes.
    """
    site = state.mark.site if state.mark else None
    return [gpu.address for gpu in chosen(spec, state, site, machines) if not _active(state, gpu.address)]


def reboots_owed(wanted: Specs, states: Specs, machines: frozenset[str]) -> Iterator[Conflict]:
    """Warnings about hosts that wait for a reboot that the site does not allow bfinfra to do."""
    for key, spec in wanted.items():
        state = states.get(key)
        if not (isinstance(spec, Spec) and isinstance(state, State)) or spec.reboot != "never":
            continue
        cards: list[str] = []
        with suppress(Refusal):  # it is reported with the steps
            cards = [] if state.rebooting else owed(spec, state, machines)
        if cards := [each for each in cards if not _unset({each: True}, state)]:
            yield Conflict(
                Spot(key, "reboot"),
                f"passthrough of {', '.join(cards)} takes effect when the host reboots",
                why="the site says reboot: never",
                next="write reboot: if_needed, or reboot the host yourself",
                stops=False,
            )


def _effects(name: str, state: State, wanted: Cards, mark: Mark, found: Changes, spec: Spec) -> list[Step]:  # noqa: PLR0913 - one decision's whole input
    if state.rebooting:
        return _pending(name, state, wanted, lambda: _restart(name, state, mark, found, spec))
    unset = _unset(wanted, state)
    steps: list[Step] = []
    if unset:
        before = {a: not wanted[a] for a in unset} | dict(state.before)
        note = GpuHostNote(mark, before, IN_EFFECT if state.reboot == IN_EFFECT else "").encode()
        steps.append(
            Set(
                name=name,
                moid=state.detail.moid,
                wanted={a: wanted[a] for a in unset},
                note=note,
                changes=found,
            )
        )
    inert = [a for a, on in wanted.items() if _active(state, a) != on]
    if inert and spec.reboot == "if_needed" and (unset or not state.rebooted_in_vain):
        steps += _restart(name, state, mark, found, spec)
    return steps


def _pending(name: str, state: State, wanted: Cards, restart: Callable[[], list[Step]]) -> list[Step]:
    """The remaining steps of a reboot that was started. Checks again for running VMs, as one may have been
    started.
    """
    if state.has_restarted:
        return [*wait_for(state.lease, state.cluster), _leave(name, state, wanted)]
    if state.detail.connected and state.detail.boot:
        return restart()
    stay = state.begun is not None and state.begun.stay
    moid, cluster = state.detail.moid, state.detail.cluster
    return [
        Await(name=name, moid=moid),
        *wait_for(state.lease, state.cluster),
        Leave(name=name, moid=moid, cluster=cluster, note="", stay=stay),
    ]


def _restart(name: str, state: State, mark: Mark, found: Changes, spec: Spec) -> list[Step]:
    """The steps: shut down this site's servers, then reboot the host. Raises Refusal if a VM runs that must
    not be shut down.
    """
    _check_running(name, state, mark.site, in_use=spec.reboot_in_use)
    running = [h for h in state.detail.holders if h.on]
    down = [
        ShutDown(name=name, moid=state.detail.moid, vm=vm.name, vm_moid=vm.moid, changes=found)
        for vm in running
    ]
    return [*wait_for(state.lease, state.cluster), *down, *_reboot(name, state, mark, found)]


def _reboot(name: str, state: State, mark: Mark, found: Changes) -> list[Step]:
    detail = state.detail
    stay = detail.maintenance and (state.begun is None or state.begun.stay)
    begun = Begun(mark, detail.boot, stay)
    begin = Reboot(
        name=name,
        moid=detail.moid,
        cluster=detail.cluster,
        boot=detail.boot,
        maintenance=detail.maintenance,
        begun=begun.encode(),
        note="" if state.note else GpuHostNote(mark).encode(),
        instead=replace(_note(state, mark), reboot=begun.word).encode(),
        changes=found,
    )
    return [begin, Leave(name=name, moid=detail.moid, cluster=detail.cluster, note="", stay=stay)]


def _leave(name: str, state: State, wanted: Cards) -> Leave:
    helped = all(
        device.active == device.enabled for a in wanted if (device := state.device(a))
    )  # judged by what the site wants now, not when the reboot started
    over = IN_EFFECT if state.mark is None or state.mark.applied is None else ""
    note = (
        replace(state.note, reboot=over if helped else f"after:{state.detail.boot}") if state.note else None
    )
    return Leave(
        name=name,
        moid=state.detail.moid,
        cluster=state.detail.cluster,
        note=note.encode() if note else "",
        stay=(state.begun is not None and state.begun.stay) or not state.detail.maintenance,
    )


def _note(state: State, mark: Mark) -> GpuHostNote:
    return state.note or GpuHostNote(mark)


def _check_running(name: str, state: State, site: str, *, in_use: bool) -> None:
    """Raises Refusal if a running VM forbids a reboot: a VM with a passed-through card can't move to another
    host.
    """
    for vm in (h for h in state.detail.holders if h.on):
        foreign = not ours(vm, site)
        if foreign or not in_use:
            raise Refusal(
                f"{name} can't be rebooted: the VM {vm.name} runs with its GPU",
                field="reboot",
                why="it is not this site's" if foreign else "work on its GPU would be lost",
                next="shut it down first" + ("" if foreign else ", or write reboot_in_use: true"),
            )


def _unset(wanted: Cards, state: State) -> list[str]:
    return [a for a, on in sorted(wanted.items()) if (device := state.device(a)) and device.enabled != on]


def _active(state: State, address: str) -> bool:
    device = state.device(address)
    return device is not None and device.active
