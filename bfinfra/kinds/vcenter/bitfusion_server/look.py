"""Observes servers: one survey of all VMs' marks, the details of this site's VMs, descriptors of OVAs,
digests of secrets. Later reads ask for this site's VMs by their ids.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.backends import ova
from bfinfra.backends.survey_cache import KnownObjects
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.backends.vcenter.places import Inventory, only
from bfinfra.backends.vcenter.vm import Brief, Vm
from bfinfra.kinds.vcenter.base.machine import checks
from bfinfra.kinds.vcenter.base.machine.notes import MARKS, OF_ALL
from bfinfra.kinds.vcenter.base.machine.places import unread_of
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty, given, inspect, pepper_of
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.bitfusion_server import state
from bfinfra.kinds.vcenter.bitfusion_server.appliance import Packages, noted
from bfinfra.kinds.vcenter.bitfusion_server.checks import asked
from bfinfra.kinds.vcenter.bitfusion_server.properties import asked as registers
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import KEYS, KIND, MARK, BitfusionServerFacts, State
from bfinfra.model.awaited import Absent, away
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.reading import Reading
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret, matches
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.vcenter import VCenter

PLACES: Reading[Inventory] = Reading("Inventory")
COMPARED: Reading[list[Brief]] = Reading("VirtualMachine", (*MARKS.paths, "digests"))
Known = KnownObjects[str, None]
COMPARED_EARLY = 200
"""VMs whose digests are compared during the prefetch. Many VMs have few distinct digests among them, and to
decode all of them would take time itself.
"""
Specs = Mapping[str, Spec | None]
Hosts = Mapping[Key, ResolvedRef]
"""The hosts as last observed, each with the VMs that hold its cards."""


class Observer:
    """Observes the servers of one vCenter."""

    def __init__(self, vcenter: VCenter, cache: SurveyCache, site: Site, packages: Packages) -> None:
        self._vcenter = vcenter
        self._cache = cache
        self._site = site
        self._packages = packages
        self._known: Known = cache.objects(KIND)
        self._inventory = Inventory()
        """As last read."""

    def fetch(self, reading: Reading[object], wanted: Specs) -> object:
        """Reads what a survey needs, whatever the hosts' state is."""
        if reading == PLACES:
            return self._vcenter.inventory.read()
        return self._compared(wanted) if reading == COMPARED else self._vcenter.machines.survey(*OF_ALL)

    def _compared(self, wanted: Specs) -> list[Brief]:
        """All VMs with their marks. Also compares secrets with their digests now, while the processor is
        idle: each takes 40 ms, and `matches` caches the result.
        """
        found = self._cache.read(MARKS, KIND, lambda: self._vcenter.machines.survey(*OF_ALL))
        for (_, kept), value in {
            (value.leads, kept): value
            for brief in found[:COMPARED_EARLY]
            for value, kept in _digests(brief, wanted)
        }.items():
            with contextlib.suppress(BfinfraError):  # the code that needs the value reports the error
                matches(value.reveal(), kept, pepper_of(self._site))
        return found

    def observe(self, wanted: Specs, hosts: Hosts, *, include_unlisted: bool) -> Observation:
        """The state of each desired and each marked server.

        Without `include_unlisted`, reads again only the VMs that are known to be the desired servers', as
        long as nothing else moved.
        """
        found = None if include_unlisted else self._again(wanted, hosts)
        if found is None:
            found = self._survey(wanted, hosts, include_unlisted=include_unlisted)
        states, unread = self._states((each for each in found if not each.unread), wanted), unread_of(found)
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        ovas = {
            text: self._packages.look(of)
            for text, of in {spec.ova.text: spec.ova for spec in specs.values()}.items()
        }
        waiting = {name for name, spec in specs.items() if isinstance(ovas[spec.ova.text], Absent)}
        packages = {name: package for name in waiting if (package := noted(specs[name], states.get(name)))}
        secrets, damaged = self._secrets(specs, states, ovas, packages), self._damaged(specs, states, ovas)
        vcenter = self._vcenter_for(specs, states, ovas)
        named = {key: need.spec for key, need in hosts.items()} | {Key(KIND, n): s for n, s in specs.items()}
        live = {Key(KIND, name): each for name, each in states.items()}
        due = asked(named, live, self._inventory)
        seen = checks.seen(self._vcenter, due, self._inventory, rooms=include_unlisted)
        return Observation(
            states,
            BitfusionServerFacts(
                self._inventory, ovas, secrets, self._known.gone, damaged, packages, seen, vcenter
            ),
            {name: why for name, why in unread.items() if name not in states},
        )

    def _again(self, wanted: Specs, hosts: Hosts) -> list[Vm] | None:
        """The desired servers' VMs, read again. None if one no longer exists, has no longer its mark, or is
        on an unknown host; then a full survey is needed.

        If they had no VM, the list is empty, unless a host shows one now. That is safe: a Deploy fails if the
        VM exists. A deployment from a library does not, so it is surveyed in full.
        """
        known_ids = self._known.of(wanted)
        if not known_ids:
            return (
                None
                if known_ids is None
                or any(spec and spec.library for spec in wanted.values())
                or self._elsewhere(wanted, hosts)
                else []
            )
        found = self._vcenter.machines.read(sorted(known_ids), KEYS)
        briefs = [Brief(m.moid, m.name, m.folder, m.extra.get(MARK, "")) for m in found]
        same = _ours(briefs, wanted, self._inventory, include_unlisted=False).keys() == known_ids
        return found if same and {m.host for m in found} <= {h.moid for h in self._inventory.hosts} else None

    def _elsewhere(self, wanted: Specs, hosts: Hosts) -> bool:
        """Return whether a host shows a VM of theirs that another run created."""
        holders = (
            holder
            for need in hosts.values()
            if need.state is not None
            for holder in need.state.detail.holders
        )
        return any(
            _address(Mark.owner_in(holder.mark)) in wanted
            for holder in holders
            if holder.moid not in self._known.gone
        )

    def _survey(self, wanted: Specs, hosts: Hosts, *, include_unlisted: bool) -> list[Vm]:
        """The VMs of desired and marked servers in full. The survey of the hosts has just read some of them,
        which are not read again.
        """
        holders = {
            holder.moid: holder.machine
            for need in hosts.values()
            if need.state is not None
            for holder in need.state.detail.holders
        }
        self._inventory = inventory = self._cache.read(PLACES, KIND, self._vcenter.inventory.read)
        briefs = self._cache.read(COMPARED, KIND, lambda: self._compared(wanted))
        if holders.keys() - {
            b.moid for b in briefs
        }:  # created or deleted since the hosts were read: only a new survey can show which
            briefs = self._vcenter.machines.survey(MARK)
        ours = _ours(briefs, wanted, inventory, include_unlisted=include_unlisted)
        ids: dict[str, list[str]] = {name: [] for name in wanted}
        for moid, name in ours.items():
            ids.setdefault(name, []).append(moid)
        for name, those in ids.items():
            self._known.saw(name, those)
        self._known.missed(holders.keys() - {b.moid for b in briefs})
        known = [machine for moid in ours if include_unlisted and (machine := holders.get(moid))]
        return [*known, *self._vcenter.machines.read(ours.keys() - {m.moid for m in known}, KEYS)]

    def _states(self, found: Iterable[Vm], wanted: Specs) -> dict[str, State]:
        """Server → its VM. If several VMs have the same mark, the one with the server's instance UUID is
        taken, else the oldest. Copies are left out, unless one is where a desired server belongs.
        """
        hosts = {h.moid: h.name for h in self._inventory.hosts}
        found_states = [state.read(machine, hosts.get(machine.host, "")) for machine in found]
        states: dict[str, State] = {}
        for each in sorted(
            (s for s in found_states if not s.copy),
            key=lambda s: (
                s.machine.instance_uuid != identity(self._site.name, f"{KIND}/{_address(s.mark)}"),
                s.machine.moid,
            ),
        ):
            name = _address(each.mark) or each.machine.name
            if each.machine.moid not in self._known.beside and states.setdefault(name, each) is not each:
                self._known.beside.add(each.machine.moid)
        for copy in (s for s in found_states if s.copy):
            at_home = _is_home(wanted.get(copy.machine.name), copy.machine.folder, self._inventory)
            in_place = copy.machine.name if at_home else ""
            for name in (in_place, _address(Mark.owner_in(copy.machine.extra[MARK]))):
                if wanted.get(name) is not None:  # the copy is in the way; deletion leaves it alone
                    states.setdefault(name, copy)
        return states

    def _vcenter_for(
        self, specs: Mapping[str, Spec], states: Mapping[str, State], ovas: Mapping[str, ova.Ova | Problem]
    ) -> Identity | None:
        """The identity of this vCenter, if a server to create or change needs it for its registration, else
        None.
        """
        for name, spec in specs.items():
            package, existing = ovas[spec.ova.text], states.get(name)
            mark = existing.mark if existing else None
            same = isinstance(package, Absent) or _up_to_date(spec, existing, package)
            unmoved = mark is not None and mark.applied == spec.applied() and same
            if not unmoved and (
                isinstance(package, Absent) or (isinstance(package, ova.Ova) and registers(package))
            ):
                return self._vcenter.identity
        return None

    def _damaged(
        self, specs: Mapping[str, Spec], states: Mapping[str, State], ovas: Mapping[str, ova.Ova | Problem]
    ) -> dict[str, Problem]:
        """The damage of each local OVA that a server has to be created from, by server. Read now, so that the
        plan reports it, not the upload.

        An OVA behind a URL is read in full only when it is uploaded: a plan downloads nothing.
        """
        here = {name: spec for name, spec in specs.items() if not isinstance(ovas[spec.ova.text], Absent)}
        due = {
            name: spec.ova
            for name, spec in here.items()
            if spec.ova.file and not _up_to_date(spec, states.get(name), ovas[spec.ova.text])
        }
        return {name: problem for name, of in due.items() if (problem := self._packages.damage(of))}

    def _secrets(
        self,
        specs: Mapping[str, Spec],
        states: Mapping[str, State],
        ovas: Mapping[str, ova.Ova | Problem],
        packages: Mapping[str, ova.Ova],
    ) -> dict[tuple[str, str], SecretProperty]:
        pepper = (
            pepper_of(self._site)
            if any(isinstance(value, Secret) for spec in specs.values() for value in spec.properties.values())
            else ""
        )
        declared = {text: package.declared for text, package in ovas.items() if isinstance(package, ova.Ova)}
        found: dict[tuple[str, str], SecretProperty] = {}
        alike: dict[tuple[object, ...], SecretProperty] = {}
        for name, spec in specs.items():
            kept = _digests_given(states.get(name))
            known = packages[name].declared if name in packages else declared.get(spec.ova.text, {})
            for key, value in spec.properties.items():
                if isinstance(value, Secret) and (of := known.get(key)):
                    which = (value.leads, spec.ova.text, key, None if kept is None else kept.get(key, ""))
                    if which not in alike:
                        gone = away(spec, {f"properties.{key}": value})
                        alike[which] = (
                            SecretProperty(away=gone[1]) if gone else inspect(key, value, of, kept, pepper)
                        )
                    checked = alike[which]
                    found[name, key] = (
                        replace(checked, stale=not given(states.get(name), kept, key, value))
                        if checked.away
                        else checked
                    )
        return found


def _digests(brief: Brief, wanted: Specs) -> Iterator[tuple[Secret, str]]:
    """The secrets of a desired server, each with the digest noted on its VM."""
    spec = wanted.get(_server(Mark.address_in(brief.mark)))
    kept = Mark.decode(brief.also[0]) if spec and brief.also else None
    for key, digest in ((kept and kept.applied) or {}).items():
        if spec and isinstance(value := spec.properties.get(key), Secret):
            yield value, str(digest)


def _digests_given(existing: State | None) -> Mapping[str, str] | None:
    """The digests of what an existing VM was given; None if it was given nothing yet."""
    return None if existing is None or existing.importing else existing.digests


def _up_to_date(spec: Spec, existing: State | None, package: ova.Ova | Problem) -> bool:
    """Return whether a server's VM exists as it should, so that nothing is imported for it."""
    if existing is None or existing.importing or isinstance(package, Problem):
        return False
    applied = existing.applied
    moved = bool(applied) and spec.applied()["ova"] != applied.get("ova")
    same = existing.machine.extra.get(state.OVA, "") in ("", state.release(package))
    return same and not moved and existing.host == spec.host


def _ours(
    briefs: Iterable[Brief], wanted: Specs, inventory: Inventory, *, include_unlisted: bool
) -> dict[str, str]:
    """VM id → server: marked VMs, and unmarked VMs that have the name and folder of a desired server."""
    found = {}
    for brief in briefs:
        address = Mark.address_in(brief.mark)
        name = _server(address)
        own = brief.own_name
        spec = wanted.get(own)
        in_the_way = address is None and (
            _is_home(spec, brief.folder, inventory) or (spec and own != brief.name)
        )
        if in_the_way or (name and (include_unlisted or name in wanted)):
            found[brief.moid] = name or own
    return found


def _is_home(spec: Spec | None, folder: str, inventory: Inventory) -> bool:
    """Whether the folder with that id is a desired server's, in the datacenter of its host."""
    host = only(inventory.host(spec.host)) if spec else None
    home = only(inventory.folder(spec.folder, host.datacenter if host else "")) if spec else None
    return home is not None and home.moid == folder


def _address(mark: Mark | None) -> str:
    """The server's name in a mark, or "" if the mark is of another kind."""
    return _server(mark.address if mark else None)


def _server(address: str | None) -> str:
    return address.removeprefix(f"{KIND}/") if address and address.startswith(f"{KIND}/") else ""
