"""The server: observe, decide, wait, act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.kinds._trails import of_machines
from bfinfra.kinds.bitfusion_server import decide, steps
from bfinfra.kinds.bitfusion_server.look import Looks
from bfinfra.kinds.bitfusion_server.moids import Moids
from bfinfra.kinds.bitfusion_server.packages import Packages
from bfinfra.kinds.bitfusion_server.run import Runs
from bfinfra.kinds.bitfusion_server.spec import Spec
from bfinfra.kinds.bitfusion_server.state import State
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.errors import Unreachable
from bfinfra.model.kind import Around, Need, Readiness, Ready, Report, Seen, Trace, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Entity, Places, holds
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.transport import Seam
    from bfinfra.backends.vcenter import VCenter

__all__ = ["BitfusionServer", "Spec", "State"]
KNOCK = 3.0  # seconds for a connect to the server's port


class BitfusionServer(kind.Kind[Spec, State]):
    """The appliance's VM with its GPUs."""

    document = Document.SINGAPORE_POC
    deadline = 1800
    acts = (
        steps.Deploy, steps.Discard, steps.Stop, steps.Configure, steps.Move, steps.PowerOn, steps.Seal, steps.Delete, steps.Replace,
    )
    reads = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter, seam: Seam, site: Site) -> None:
        self._seam, self._vcenter = seam, vcenter
        packages, moids = Packages(seam), Moids()
        self._looks = Looks(vcenter, site, packages, moids)
        self._runs = Runs(vcenter, site, packages, moids)

    def begin(self, wanted: Mapping[str, Spec]) -> None:
        """The places and all marks, while the hosts are looked at."""
        self._looks.begin(wanted)

    def observe(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], *, others: bool = True) -> Seen:
        """The marks of all VMs, then everything of those that are wanted or marked; the OVAs' descriptors. Without others: the wanted's VMs alone."""
        return self._looks.observe(wanted, {key: need for key, need in needs.items() if key.kind == "gpu_host"}, others=others)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """Deploy, settle what is half done, reconfigure, replace, delete."""
        return decide.steps(name, spec, state, around)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, Need], datacenter: str) -> Places:
        """Where its VM goes. All datastores where the site names none; libraries belong to no folder but the root."""
        host = needs["host"].spec if "host" in needs else None
        cluster = (host and host.cluster) or "*"
        pool = "/".join(filter(None, (f"/{datacenter}/host/{cluster}/Resources", spec.resource_pool)))
        return {
            "pool": (Entity(pool, "ResourcePool"),),
            "folder": (Entity(f"/{datacenter}/vm/{spec.folder.strip('/')}".rstrip("/"), "Folder", propagate=True),),
            "datastore": (Entity(f"/{datacenter}/datastore/{spec.datastore or '*'}", "Datastore"),),
            "library": (ROOT,) if spec.library else (),
            "networks": tuple(dict.fromkeys(_network(label, spec, needs, datacenter) for label in sorted(spec.networks))),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """On, and its tools report an address or its port takes connections."""
        machine = state.machine
        if not machine.on:
            return waiting("the VM is off")
        if spec.readiness == "tools":
            if not machine.tools:
                return waiting("VMware Tools don't run yet")
            return Readiness(Ready.READY, note=machine.ip) if machine.ip else waiting("VMware Tools report no address yet")
        address = spec.answers_at() or machine.ip
        if not address:
            return waiting("the VM reports no address yet")
        try:
            self._seam.connect(address, spec.port, KNOCK)
        except Unreachable:
            return waiting(f"{address}:{spec.port} takes no connections yet")
        return Readiness(Ready.READY, note=f"{address}:{spec.port}")

    def trail(self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]) -> Mapping[str, Mapping[str, Trace]]:
        """By the events of their VMs."""
        return of_machines(self._vcenter.events, asked, lambda state: state.machine.moid)

    def run(self, step: kind.Step, report: Report) -> None:
        """One step; an import says how far it is."""
        if isinstance(step, steps.Deploy):
            self._runs.deploy(step, report)
        else:
            self._runs.small(step)


def _network(label: str, spec: Spec, needs: Mapping[str, Need], datacenter: str) -> Entity:
    """All networks, for one that this site makes: nobody has rights on what isn't there yet."""
    need = needs.get(f"networks.{label}.network")
    if need is not None and need.spec is not None:
        return Entity(f"/{datacenter}/network", "Folder", propagate=True)
    return Entity(f"/{datacenter}/network/{spec.networks[label].network}", "Network")
