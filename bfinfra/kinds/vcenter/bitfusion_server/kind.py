"""The kind bitfusion_server: observe, steps, readiness, run."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.kinds.audit import of_machines
from bfinfra.kinds.vcenter.base.machine.notes import MARKS, appliance
from bfinfra.kinds.vcenter.base.machine.places import here, places_of
from bfinfra.kinds.vcenter.base.machine.steps import (
    Delete,
    Discard,
    Move,
    Note,
    OnMachine,
    Relocate,
    Replace,
    Start,
    Stop,
    Write,
)
from bfinfra.kinds.vcenter.bitfusion_server import checks, decide
from bfinfra.kinds.vcenter.bitfusion_server.appliance import Packages, Runs
from bfinfra.kinds.vcenter.bitfusion_server.describe import description
from bfinfra.kinds.vcenter.bitfusion_server.look import COMPARED, PLACES, Observer
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import KEYS, KIND, BitfusionServerFacts, State, read
from bfinfra.kinds.vcenter.bitfusion_server.target import Deploy
from bfinfra.model import kind
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Unreachable
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import Readiness, Ready, waiting
from bfinfra.model.reading import Reading
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.vm import Vm

__all__ = ["BitfusionServer", "Spec", "State"]
KNOCK = 3.0  # seconds to wait for a connection to the server's port


class BitfusionServer(kind.Kind[Spec, State]):
    """A Bitfusion server: the appliance's VM with its GPUs."""

    document = Document.SINGAPORE_POC
    followed = True
    holds_data = True
    checks = checks.CHECKS
    deadline = 1800
    step_types = (Deploy, Discard, Stop, Write, Move, Relocate, Start, Note, Delete, Replace)
    survey_privileges = (holds(VCENTER, *READ),)

    prefetch = (MARKS, PLACES, COMPARED)

    def __init__(self, vcenter: VCenter, cache: SurveyCache, transport: Transport, site: Site) -> None:
        self._transport, self._vcenter = transport, vcenter
        packages = Packages(transport)
        self._observer = Observer(vcenter, cache, site, packages)
        self._runs = Runs(vcenter, site, packages, cache.objects(KIND))

    def fetch(self, reading: Reading[object], wanted: Mapping[str, Spec | None]) -> object:
        """Return the survey's read for this kind: the inventory, or the marks of all VMs."""
        return self._observer.fetch(reading, wanted)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """The state of each desired and each marked server, with the facts that decisions need: the marks of
        all VMs, the details of the VMs that count, and the OVAs' descriptors. Without `include_unlisted`, it
        reads only the desired servers' VMs.
        """
        return self._observer.observe(
            wanted,
            {key: need for key, need in needs.items() if key.kind == "gpu_host"},
            include_unlisted=include_unlisted,
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every VM whose product is called Bitfusion."""
        origins = {each.moid: each for each in self._vcenter.machines.origins() if appliance(each)}
        inventory = self._vcenter.inventory.read()
        for machine in here(self._vcenter.machines.read(sorted(origins), KEYS) if origins else (), inventory):
            places = places_of(machine, inventory)
            yield description(read(machine, places.host), origins[machine.moid], places)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """The steps that `decide` returns."""
        return decide.steps(name, spec, state, context)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: BitfusionServerFacts | None) -> Iterator[Conflict]:
        """Servers that together need more of a host or a datastore than it has; servers too old for the
        site's device plug-in.
        """
        yield from checks.conflicts(wanted, states, facts or BitfusionServerFacts())

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The VM's folder, pool, host, datastore and networks. If the site names no datastore, all
        datastores; libraries are in no folder, so the root.
        """
        host = needs["host"].spec if "host" in needs else None
        cluster = (host and host.cluster) or "*"
        pool = "/".join(filter(None, (f"/{datacenter}/host/{cluster}/Resources", spec.resource_pool)))
        folder = Entity(path_in(datacenter, "vm", spec.folder), "Folder", propagate=True)
        return {
            "pool": (Entity(pool, "ResourcePool"),),
            "folder": (folder,),
            "migrated": (folder,),
            "half_made": (folder,),
            "firmware": (folder,),
            "vapps": (folder,),
            "disks": (),
            "stores": (),
            "datastore": (Entity(path_in(datacenter, "datastore", spec.datastore or "*"), "Datastore"),),
            "library": (ROOT,) if spec.library else (),
            "networks": tuple(
                dict.fromkeys(_network(label, spec, needs, datacenter) for label in sorted(spec.networks))
            ),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the VM is on, and VMware Tools report its address or its port takes connections."""
        if why := _silent(spec, state.machine):
            return waiting(why)
        if spec.readiness == "tools":
            return Readiness(Ready.READY, note=state.machine.ip)
        address = spec.answers_at() or state.machine.ip
        try:
            self._transport.connect(address, spec.port, KNOCK)
        except Unreachable:
            return waiting(f"{address}:{spec.port} does not accept connections yet")
        return Readiness(Ready.READY, note=f"{address}:{spec.port}")

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the events of the VMs."""
        return of_machines(self._vcenter.events, asked, lambda state: state.machine.moid)

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. An import reports its progress."""
        match step:
            case Deploy():
                self._runs.deploy(step, report)
            case OnMachine():
                self._runs.small(step)
            case _:
                raise AssertionError(step)


def _silent(spec: Spec, machine: Vm) -> str:
    """Return why it can't answer yet, so that a connection need not be tried; "" if it may."""
    if not machine.on:
        return "the VM is off"
    if machine.tools and machine.ip and _another(spec, machine.ip):
        return f"VMware Tools report {machine.ip}: whatever answers at {spec.answers_at()} is another machine"
    if spec.readiness == "tools" and not machine.tools:
        return "VMware Tools are not running yet"
    if spec.readiness == "tools" and not machine.ip:
        return "VMware Tools report no address yet"
    return "" if spec.answers_at() or machine.ip else "the VM reports no address yet"


def _another(spec: Spec, reported: str) -> bool:
    """Return whether a VM reports an address other than the one that it was given. Always False for DHCP, or
    if the reported address is of the other IP version.
    """
    given = [ipaddress.ip_address(each.ip) for each in spec.networks.values() if each.ip]
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(reported)
        return (
            len(given) == len(spec.networks)
            and found not in given
            and all(each.version == found.version for each in given)
        )
    return False


def _network(label: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> Entity:
    """The network's entity; all networks if this site makes it, as privileges can't be granted on an object
    that doesn't exist yet.
    """
    need = needs.get(f"networks.{label}.network")
    if need is not None and need.spec is not None:
        return Entity(f"/{datacenter}/network", "Folder", propagate=True)
    return Entity(path_in(datacenter, "network", spec.networks[label].network), "Network")
