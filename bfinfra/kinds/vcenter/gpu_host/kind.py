"""The kind gpu_host: observe, steps, readiness, run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.places import Thing, meant
from bfinfra.kinds.vcenter.base.begun import Wait, held
from bfinfra.kinds.vcenter.base.machine.notes import appliance
from bfinfra.kinds.vcenter.gpu_host import decide, state, steps
from bfinfra.kinds.vcenter.gpu_host.checks import CHECKS
from bfinfra.kinds.vcenter.gpu_host.describe import description
from bfinfra.kinds.vcenter.gpu_host.spec import Spec
from bfinfra.kinds.vcenter.gpu_host.state import ATTRIBUTE, BEGUN, VM_KEYS, VM_MARK, GpuHostFacts, State
from bfinfra.kinds.vcenter.gpu_host.steps import Leave, Reboot
from bfinfra.model import kind
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Forbidden
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.readiness import Readiness, Ready, failed, waiting
from bfinfra.model.reading import Reading
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.esxi import HostDetail

__all__ = ["GpuHost", "Spec", "State"]
NAME = "gpu_host"
MACHINES = ("bitfusion_server", "virtual_machine")
"""The kinds whose VMs may hold a host's cards."""
Details = tuple[Mapping[str, Spec | None], "list[HostDetail]"]
"""The hosts that were asked for, and what vCenter reports of them."""
DETAILS: Reading[Details] = Reading("HostSystem", ("*", *VM_KEYS))


class GpuHost(kind.Kind[Spec, State]):
    """Passthrough of GPUs on an existing host."""

    document = Document.SINGAPORE_POC
    followed = True
    checks = CHECKS
    managed = False
    deadline = 1800
    step_types = (
        steps.Set,
        steps.ShutDown,
        Wait,
        steps.Reboot,
        steps.Await,
        steps.Leave,
        steps.Commit,
        steps.Forget,
    )
    survey_privileges = (holds(VCENTER, *READ),)

    prefetch = (DETAILS,)

    def __init__(self, vcenter: VCenter, cache: SurveyCache, site: Site) -> None:
        self._vcenter = vcenter
        self._cache = cache
        self._site = site.name
        self._machines = frozenset(key.name for key in site.resources if key.kind in MACHINES)
        self._ids: Mapping[str, str] = {}
        """Of all hosts, by name, as last read."""
        self._names: Mapping[str, str] = {}
        """Of all clusters, by id, as last read."""
        self._restarting: dict[str, str] = {}
        """Id → what this run began on a host, whoever takes the note of it off."""

    def fetch(self, reading: Reading[object], wanted: Mapping[str, Spec | None]) -> Details:
        """Reads the hosts that the site wants or that have its note."""
        return {**wanted}, self._survey(wanted, include_unlisted=True)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes of all hosts, then the details of those that the site wants or that have its note.
        Without `include_unlisted`, reads only the wanted hosts, by their ids.
        """
        known = [] if include_unlisted else [self._ids[name] for name in wanted if name in self._ids]
        found = self._vcenter.hosts.read(known, VM_MARK) if known else []
        if not found or len(found) < len(wanted):
            found = self._all(wanted) if include_unlisted else self._survey(wanted, include_unlisted=False)
        texts = [spec.cluster for spec in wanted.values() if spec and spec.cluster]
        clusters = {text: each.moid for text, each in self._clusters(self._names, texts).items()}
        other = self._vcenter.leases.other
        at = {**self._names, **{each: text for text, each in clusters.items()}}
        states = {d.name: state.read(self._noted(d), at.get(d.cluster, ""), other(d.cluster)) for d in found}
        return Observation(
            {name: each for name, each in states.items() if each.mark or wanted.get(name)},
            GpuHostFacts(tuple(sorted(self._ids)), self._machines, clusters),
        )

    def _noted(self, detail: HostDetail) -> HostDetail:
        begun = detail.attributes.get(BEGUN) or self._restarting.get(detail.moid, "")
        return replace(detail, attributes={**detail.attributes, BEGUN: begun}) if begun else detail

    def _clusters(self, names: Mapping[str, str], texts: Sequence[str] = ()) -> Mapping[str, Thing]:
        """Clusters by what the site calls them. `names`: those of all, by id."""
        return meant(self._vcenter.inventory.clusters(names, texts), texts)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every host with GPUs in the site's datacenter."""
        notes, names, machines = self._vcenter.hosts.survey(ATTRIBUTE)
        clusters = {each.moid: text for text, each in self._clusters(names).items()}
        here = {each.moid for each in self._vcenter.inventory.read().hosts}
        ids = [moid for moid, _ in notes.values() if moid in here]
        there = [moid for host in ids for moid in machines.get(host, ())]
        appliances = {each.moid: each.name for each in self._vcenter.machines.origins() if appliance(each)}
        for detail in self._vcenter.hosts.read(sorted(ids), VM_MARK, VM_KEYS, there):
            described = state.read(detail, clusters.get(detail.cluster, ""))
            serves = not appliances.keys().isdisjoint(machines.get(detail.moid, ()))
            if found := description(described, self._site, frozenset(appliances.values()), serves=serves):
                yield found

    def _all(self, wanted: Mapping[str, Spec | None]) -> list[HostDetail]:
        """The details of the hosts. Uses the prefetch if it was for the same hosts."""
        of, found = self._cache.read(DETAILS, NAME, lambda: self.fetch(DETAILS, wanted))
        return found if of == wanted else self._survey(wanted, include_unlisted=True)

    def _survey(self, wanted: Mapping[str, Spec | None], *, include_unlisted: bool) -> list[HostDetail]:
        """The hosts that the site wants or that have its note. Remembers the ids of all hosts."""
        notes, self._names, machines = self._vcenter.hosts.survey(ATTRIBUTE)
        self._ids = {name: moid for name, (moid, _) in notes.items()}
        names = {
            n for n, (_, mark) in notes.items() if (include_unlisted or n in wanted) and Mark.owner_in(mark)
        }
        names |= {n for n, spec in wanted.items() if spec is not None and n in notes}
        ids = [self._ids[name] for name in sorted(names)]
        return self._vcenter.hosts.read(
            ids, VM_MARK, VM_KEYS, [moid for host in ids for moid in machines[host]]
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Sets passthrough, reboots if that is needed and allowed, notes what was applied. On deletion
        restores the earlier passthrough.
        """
        if state is None:
            return decide.absent(name, spec, context.facts)
        if spec is None:
            return decide.release(name, state, context.mark) if state.mark else ()
        machines = context.facts.machines if context.facts else frozenset()
        decide.check_cluster(spec, state, context.facts)
        return decide.manage(name, spec, state, context.mark, machines)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: GpuHostFacts | None) -> Iterator[Conflict]:
        """Warnings about hosts that wait for a reboot that the site does not allow bfinfra to do."""
        return decide.reboots_owed(wanted, states, facts.machines if facts else frozenset())

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The host, and the root, where custom attributes are defined."""
        host = (Entity(f"{path_in(datacenter, 'host', spec.cluster or '*')}/{name}", "HostSystem"),)
        rebooted, root = (host, (ROOT,)) if spec.reboot == "if_needed" else ((), ())
        return {"host": host, "rebooted": rebooted, "leases": root, "definitions": (ROOT,)}

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when the host is connected, every card is in effect, and no reboot is running or needed."""
        cards = [] if spec is None or state.begun else decide.owed(spec, state, self._machines)
        if state.lease and (spec is None or cards or state.begun):
            return held(state.lease, state.cluster)
        if state.begun and not (state.detail.connected and state.detail.boot):
            return waiting("the host is restarting")
        if not state.detail.connected:
            return waiting("the host is not connected to vCenter")
        if spec is None or not cards or (spec.reboot == "if_needed" and not state.rebooted_in_vain):
            return Readiness(Ready.READY, note=self._vcenter.leases.warning())
        if state.rebooted_in_vain:
            return failed(
                f"passthrough of {', '.join(cards)} is not in effect, even after a reboot of the host"
            )
        return failed(
            f"passthrough of {', '.join(cards)} takes effect when the host reboots; "
            "the site says reboot: never; write reboot: if_needed, or reboot the host yourself"
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. Notes are written before the change that they describe."""
        hosts = self._vcenter.hosts
        match step:
            case steps.Set(moid=moid):
                hosts.set_attribute(moid, ATTRIBUTE, step.note)
                hosts.set_passthrough(moid, step.wanted)
            case steps.ShutDown():
                self._vcenter.machines.stop(step.vm_moid)
            case steps.Reboot():
                self._reboot(step)
            case Wait() | steps.Await():
                pass  # ready() reports when the other run has ended, and when the host is back
            case steps.Leave():
                self._leave(step)
            case steps.Commit(moid=moid):
                hosts.set_attribute(moid, ATTRIBUTE, step.note)
            case steps.Forget(moid=moid):
                last = hosts.drop_attribute(moid, ATTRIBUTE)
                if last and not any(text for _, text in hosts.notes(BEGUN).values()):
                    hosts.drop_attribute(moid, BEGUN)  # its definition; another run's note stays

    def _reboot(self, step: Reboot) -> None:
        """Begins, while this run holds the cluster's lease, which it keeps until the host has left
        maintenance mode. Fails with Conflict where another run has it, or has begun since the decision.
        """
        hosts, leases, moid = self._vcenter.hosts, self._vcenter.leases, step.moid
        leases.take(step.cluster, moid)
        with contextlib.ExitStack() as failed:
            failed.callback(leases.leave, step.cluster, moid)
            if step.note:
                hosts.set_attribute(moid, ATTRIBUTE, step.note)
            self._begin(step)
            if not step.maintenance:
                hosts.enter_maintenance(moid)
            leases.confirm(step.cluster)
            hosts.reboot(moid, step.boot)
            self._restarting[moid] = step.begun
            failed.pop_all()

    def _begin(self, step: Reboot) -> None:
        """Notes on the host that it begins."""
        begin = functools.partial(
            self._vcenter.hosts.begin, step.moid, boot=step.boot, maintenance=step.maintenance
        )
        try:
            begin(BEGUN, step.begun)
        except Forbidden:  # the account may not define the attribute; the note's own exists
            begin(ATTRIBUTE, step.instead)

    def _leave(self, step: Leave) -> None:
        """Ends maintenance mode, then says that it is over."""
        hosts, leases, moid = self._vcenter.hosts, self._vcenter.leases, step.moid
        with leases.held(step.cluster, moid):
            if not step.stay:
                hosts.exit_maintenance(moid)
            if step.note:
                hosts.set_attribute(moid, ATTRIBUTE, step.note)
            hosts.clear_attribute(moid, BEGUN)
            self._restarting.pop(moid, None)
