"""The kind service_vm: observe, readiness, run. Steps are decided in decide.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.backends.kubernetes.marks import mark_of, ours, selector
from bfinfra.kinds import power
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.cluster_locator import Cluster, ClusterLocator
from bfinfra.kinds.supervisor.base import fit, gpus, offers
from bfinfra.kinds.supervisor.base.words import Fields, Object
from bfinfra.kinds.supervisor.service_vm import catalog, steps
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.decide import decide, drifted
from bfinfra.kinds.supervisor.service_vm.describe import description
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.kinds.supervisor.service_vm.state import State, state_of
from bfinfra.kinds.supervisor.service_vm.write import content, write
from bfinfra.model import kind
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Forbidden, Missing, NotYet
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, Ready, waiting
from bfinfra.model.refs import Key
from bfinfra.model.rights import CLUSTERS as HERE
from bfinfra.model.rights import Api, PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters
    from bfinfra.backends.vcenter import VCenter

Parts = tuple[list[Object], dict[str, Object]]
"""The claims of a namespace, and its services by name."""
LIVES_IN = ("supervisor_namespace",)
AGAIN = 2.0  # seconds until a missing image or class is looked for again
WHY_OPTIONAL = "the supervisor, not the plan, refuses what the namespace doesn't offer"
UNSEEN = "bfinfra doesn't see machines that left the file"
PATHS = {
    "vm_class": ("className",),
    "storage_class": ("storageClass",),
    "power": ("powerState",),
    "properties": ("bootstrap", "vAppConfig", "properties"),
    "cloud_init": ("bootstrap", "cloudInit"),
    "ready": ("readinessProbe",),
}
"""Field of a site → path in a machine's spec."""
DISK_PATHS = {"size": ("spec", "resources"), "keep": ("metadata", "ownerReferences")}


class ServiceVm(kind.Kind[Spec, State]):
    """A machine of a supervisor's VM Service."""

    document = Document.CONSOLIDATED
    holds_data = True
    deadline = 1800
    step_types = (
        steps.Await,
        steps.Create,
        steps.Update,
        steps.Start,
        steps.Stop,
        steps.WriteSecret,
        steps.DropSecret,
        steps.MakeDisk,
        steps.SetDisk,
        steps.KeepDisk,
        steps.Clear,
        steps.ReleaseDisk,
        steps.DropDisk,
        steps.Expose,
        steps.Hide,
        steps.Delete,
        steps.Replace,
    )
    survey_privileges = (may("list", steps.VMS, HERE, optional=UNSEEN),)
    resource_privileges = (
        may("list", f"{steps.VMS} {steps.SERVICES} {steps.CLAIMS}", "namespace"),
        may("get", "secrets", "namespace"),
        may(
            "list",
            "virtualmachineclasses.vmoperator.vmware.com virtualmachineclassbindings.vmoperator.vmware.com "
            "resourcequotas virtualmachineimages.vmoperator.vmware.com",
            "namespace",
            optional=WHY_OPTIONAL,
        ),
        may(
            "list",
            f"contentlibraries.{catalog.REGISTRY} contentlibraryitems.{catalog.REGISTRY}",
            "namespace",
            optional="items of the same name in two libraries are not distinguished",
        ),
        may(
            "list",
            "storageclasses.storage.k8s.io clustervirtualmachineimages.vmoperator.vmware.com "
            f"clustercontentlibraries.{catalog.REGISTRY} clustercontentlibraryitems.{catalog.REGISTRY}",
            "supervisor",
            optional=WHY_OPTIONAL,
        ),
    )

    def __init__(self, clusters: Clusters, site: Site, vcenter: VCenter | None = None) -> None:
        self._clusters, self._site, self._vcenter = clusters, site.name, vcenter
        self._locator = ClusterLocator(clusters, LIVES_IN)
        self._environment = fit.Environment()
        self._apis: dict[str, str] = {}
        self._images: dict[str, Sequence[catalog.Found] | None] = {}
        self._offers: dict[str, offers.Offer] = {}
        self._taken: dict[str, Sequence[str]] = {}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads a list per supervisor namespace; more where the file has a machine, and what the namespace
        offers where one has to be made or changed.
        """
        placed = {name: spec.namespace if spec else None for name, spec in wanted.items()}
        answers = self._locator.ask(
            placed, needs, lambda cluster: self._read(cluster, wanted), include_unlisted=include_unlisted
        )
        states: dict[str, State] = {}
        for key, found in answers.found.items():
            for name, state in found:
                mine = state.mark is not None and state.mark.name_of(self._site, "service_vm") == name
                if name in wanted or (include_unlisted and mine):
                    self._locator.saw(name, key)
                    states[name] = state
        moving = {
            spec.namespace
            for name, spec in wanted.items()
            if spec is not None and _moves(name, spec, states.get(name))
        }
        for cluster in answers.clusters.values():
            if cluster.key.name in moving:
                self._learn(cluster)
        if include_unlisted and moving and self._vcenter is not None:
            classes = {spec.vm_class for spec in wanted.values() if spec}
            self._environment = fit.read(self._vcenter, needs, classes)
        facts = catalog.ServiceVmFacts(
            dict(self._apis), dict(self._images), dict(self._offers), dict(self._taken), self._environment
        )
        return Observation(states, facts, answers.unreadable)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every machine that no cluster made."""
        answers = self._locator.ask({}, needs, self._all, include_unlisted=True)
        for key, found in answers.found.items():
            if found:
                self._learn(answers.clusters[key])
            for name, state in found:
                yield description(name, state, self._images.get(key.name) or ())

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: catalog.ServiceVmFacts | None) -> Iterator[Conflict]:
        """More vGPUs than hosts have; a machine to power on where no host takes one."""
        if facts is None:
            return
        yield from gpus.conflicts("service_vm", wanted, states, facts.environment)
        for key, spec in wanted.items():
            state = states.get(key)
            off = state is None or (isinstance(state, State) and bool(state.out_of_service(spec)))
            where = fit.home(spec.namespace, wanted, facts.environment) if isinstance(spec, Spec) else ""
            room = facts.environment.capacities.get(where)
            if off and room is not None and not room.memory and spec.power == "on":
                yield power.nowhere(key, f"no host of {where} runs a VM now")

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The supervisor namespace; what its supervisor offers to all."""
        home = needs["namespace"].key
        return {"namespace": (Api(home, home.name),), "supervisor": (Api(home),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready by its conditions, its power, its disks and its service."""
        if spec is None or (why := state.missing(spec)):
            return waiting(why if spec is not None else "being deleted")
        ports = ", ".join(str(port) for port in sorted(spec.expose))
        reached = ", ".join(
            filter(None, (state.address, f"ports {ports} at {state.ingress}" if state.ingress else ""))
        )
        return Readiness(Ready.READY, note=f"at {reached}") if reached else READY

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the managers in the objects' managedFields."""
        return {
            name: {
                field: found
                for field in fields
                if state is not None and (found := _writer(field, state)) is not None
            }
            for name, (state, fields) in asked.items()
        }

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call."""
        assert isinstance(step, steps.OfVm)
        if isinstance(step, steps.Await):
            raise NotYet(f"it is not yet so that {step.what}", retry_after=AGAIN)
        assert isinstance(step.home, Endpoint)
        write(self._clusters.at(step.home), step)

    def _read(self, cluster: Cluster, wanted: Mapping[str, Spec | None]) -> list[tuple[str, State]]:
        """This site's machines of a namespace, and those with wanted names."""
        space = cluster.namespace
        here = {name: spec for name, spec in wanted.items() if spec and spec.namespace == space}
        try:
            api = self._api(cluster)
            listed = (
                cluster.client.list(api, form.VM, space, "" if here else selector(self._site)) if api else []
            )
        except Forbidden:
            if here:
                raise
            return []
        except Missing:
            return []
        mine = [each for each in listed if _name(each) in here or ours(each, self._site)]
        if not mine and not here:
            return []
        parts = self._parts(cluster, api) if api else ([], {})
        for name in here.keys() - {_name(each) for each in mine}:
            self._taken[name] = tuple(self._others(cluster.client, name, here[name], parts))
        return [(_name(each), self._state(each, cluster, parts, wanted)) for each in mine]

    def _all(self, cluster: Cluster) -> list[tuple[str, State]]:
        """Every machine that isn't a controller's."""
        try:
            api = self._api(cluster)
            listed = cluster.client.list(api, form.VM, cluster.namespace) if api else []
            parts = self._parts(cluster, api) if listed else ([], {})
        except (Missing, Forbidden):
            return []
        return [
            (_name(each), self._state(each, cluster, parts, {}))
            for each in listed
            if not each["metadata"].get("ownerReferences")
        ]

    def _api(self, cluster: Cluster) -> str:
        """The newest version that its supervisor serves and bfinfra writes; "" for none."""
        known = self._apis.get(cluster.namespace)
        if known is None:
            version = catalog.newest(cluster.client.versions(form.GROUP))
            known = self._apis[cluster.namespace] = f"{form.GROUP}/{version}" if version else ""
        return known

    def _parts(self, cluster: Cluster, api: str) -> Parts:
        """All claims of a namespace, and its services by name."""
        client, space = cluster.client, cluster.namespace
        services = client.list(api, form.SERVICE, space)
        return client.list("v1", form.CLAIM, space), {_name(each): each for each in services}

    def _state(self, obj: Object, cluster: Cluster, parts: Parts, wanted: Mapping[str, Spec | None]) -> State:
        name, spec = _name(obj), wanted.get(_name(obj))
        claims, services = parts
        named = set(form.volumes(obj.get("spec") or {}).values())
        named |= {form.claim_name(name, disk) for disk in spec.disks} if spec else set()
        own = [
            each
            for each in claims
            if _name(each) in named or (each["metadata"].get("labels") or {}).get(form.OF_VM) == name
        ]
        held = form.secret_name(name)
        secret = cluster.client.get("v1", "Secret", held, cluster.namespace) if name in wanted else None
        right = None
        if secret is not None and (ours(secret, self._site) or (spec is not None and spec.secrets)):
            right = spec is not None and secret.get("data") == content(spec.secrets)
        return state_of(obj, self._api(cluster), cluster, (own, services.get(name)), secret=(right, secret))

    def _others(self, client: ClusterClient, name: str, spec: Spec, parts: Parts) -> Iterator[str]:
        """Objects of others under the names of a machine's parts."""
        claims, services = parts
        wanted = {form.claim_name(name, disk) for disk in spec.disks}
        existing = [(form.CLAIM, each) for each in claims if _name(each) in wanted]
        if spec.expose and name in services:
            existing.append((form.SERVICE, services[name]))
        if spec.secrets:
            held = client.get("v1", "Secret", form.secret_name(name), spec.namespace)
            existing += [("Secret", held)] if held else []
        for what, obj in existing:
            mark = mark_of(obj)
            if mark is None or mark.name_of(self._site, "service_vm") != name:
                yield f"{what} {_name(obj)}"

    def _learn(self, cluster: Cluster) -> None:
        """Read what a namespace offers to machines."""
        space, api = cluster.namespace, self._api(cluster)
        if api:
            self._images[space] = catalog.images(cluster.client, api, space)
        self._offers[space] = offers.of_machines(cluster.client, space)


def _moves(name: str, spec: Spec, state: State | None) -> bool:
    return (
        state is None
        or state.mark is None
        or state.mark.applied != spec.applied()
        or (not state.going and bool(drifted(name, spec, state)))
    )


def _writer(field: str, state: State) -> LastWriter | None:
    parts = field.split(".")
    if parts[0] == "disks" and len(parts) > 2 and parts[1] in state.claims:
        below = DISK_PATHS.get(parts[2])
        return of_field({"metadata": state.claims[parts[1]].metadata}, *below) if below else None
    if parts[0] == "expose":
        return of_field({"metadata": state.service_metadata}, "spec", "ports")
    path = PATHS.get(parts[0])
    return of_field({"metadata": state.metadata}, "spec", *path) if path else None


def _name(obj: Fields) -> str:
    return str(obj["metadata"]["name"])
