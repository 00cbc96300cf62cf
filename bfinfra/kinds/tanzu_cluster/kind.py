"""The Tanzu Kubernetes cluster: observe, decide, wait, act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from bfinfra.backends.kubernetes.contents import LISTED
from bfinfra.backends.kubernetes.errors import safe
from bfinfra.backends.kubernetes.marks import mark_of, marked
from bfinfra.kinds._homes import Home, Places
from bfinfra.kinds.tanzu_cluster import fit, offers
from bfinfra.kinds.tanzu_cluster import manifest as form
from bfinfra.kinds.tanzu_cluster.spec import Spec
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal, RemoteError
from bfinfra.model.kind import READY, Around, Change, Disruption, Later, Need, Readiness, Ready, Report, Seen, differences, failed, waiting
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import API as OWN
from bfinfra.model.rights import CLUSTERS, Api, Use, may
from bfinfra.model.rights import Places as Where

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter import VCenter

API = "run.tanzu.vmware.com/v1alpha1"
KIND = "TanzuKubernetesCluster"
HOMES = ("supervisor_namespace",)
THING = "tanzukubernetesclusters.run.tanzu.vmware.com"
SPARE = "what the namespace doesn't offer is refused by the supervisor, not by the plan"
UP = ("running", "updating", "updateFailed")
ROLLING = ("version", "vm_class", "storage_class", "volumes", "trust")


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """What the supervisor says. `body`: the object's spec; `home`: where it is asked; `endpoint` is set once it runs."""

    namespace: Annotated[str, Ref("supervisor_namespace")]
    phase: str
    body: Mapping[str, Any]
    home: Endpoint
    messages: tuple[str, ...] = ()
    nodes: Mapping[str, str] | None = None
    """Node → its status; None where the supervisor doesn't say."""
    api_server: str = ""
    endpoint: Endpoint | None = None

    @property
    def version(self) -> str:
        """The version that it runs or goes to, in full where known."""
        distribution = self.body.get("distribution") or {}
        return str(distribution.get("fullVersion") or distribution.get("version") or "")


@dataclass(frozen=True, kw_only=True)
class Create(kind.Step):
    """create cluster {name} in {namespace}"""

    rights = (may("create", THING, "namespace"),)

    name: str
    namespace: str
    home: Endpoint | Later
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Update(kind.Step):
    """update cluster {name} in {namespace}"""

    rights = (may("get patch", THING, "namespace"),)

    name: str
    namespace: str
    home: Endpoint
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Roll(Update):
    """update cluster {name} in {namespace}; its nodes are replaced one after the other"""


@dataclass(frozen=True, kw_only=True)
class Delete(kind.Step):
    """delete cluster {name} in {namespace} and all that runs in it"""

    destructive = True
    rights = (may("delete", THING, "namespace"), may("list", LISTED, OWN))
    uses = (Use.DESTROY,)
    name: str
    namespace: str
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Move(Delete):
    """delete cluster {name} in {namespace} and all that runs in it, to make it anew in another namespace"""

    disruption = Disruption.REPLACE
    why = "a cluster can't move to another namespace"
    settles = True


class TanzuCluster(kind.Kind[Spec, State]):
    """A Tanzu Kubernetes cluster in a supervisor namespace."""

    document = Document.SINGAPORE_POC
    deadline = 3600
    acts = (Create, Update, Roll, Delete, Move)
    reads = (may("list", THING, CLUSTERS),)
    looks = (
        may("list", "virtualmachineclassbindings.vmoperator.vmware.com resourcequotas", "namespace", spare=SPARE),
        may("list", "tanzukubernetesreleases.run.tanzu.vmware.com storageclasses.storage.k8s.io", "supervisor", spare=SPARE),
    )

    def __init__(self, clusters: Clusters, vcenter: VCenter | None = None) -> None:
        self._clusters = clusters
        self._vcenter = vcenter
        self._ground = fit.Ground()
        self._places = Places(clusters, HOMES)
        self._offers: dict[str, offers.Offer] = {}
        self._authorities: dict[str, str] = {}

    def observe(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], *, others: bool = True) -> Seen:
        """One list a supervisor namespace; its offers where something may have to be made."""
        placed = {name: spec.namespace if spec else None for name, spec in wanted.items()}
        answers = self._places.ask(placed, needs, lambda home: home.cluster.list(API, KIND, home.namespace), others=others)
        states: dict[str, State] = {}
        for key, objects in answers.found.items():
            for obj in objects:
                name, state = obj["metadata"]["name"], _state(obj, answers.homes[key])
                if _counts(state, name, wanted, others=others) and (name not in states or _misplaced(state, wanted.get(name))):
                    self._places.saw(name, key)
                    states[name] = self._with_contents(state, wanted.get(name)) if others else state
        self._learn(wanted, {key: answers.homes[key] for key in answers.found}, states)
        if others:
            self._survey_ground(wanted, needs, states)
        return Seen(states, offers.Facts(dict(self._offers), dict(self._authorities), self._ground), answers.unreadable)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """Create, update by server-side apply, move by deleting first, delete."""
        if spec is None:
            return () if state is None or state.phase == "deleting" else (Delete(name=name, namespace=state.namespace, home=state.home),)
        if state is not None and state.namespace != spec.namespace:
            moved = (Change("namespace", state.namespace, spec.namespace),)
            return (Move(name=name, namespace=state.namespace, home=state.home, changes=moved), _create(name, spec, around))
        if state is None or state.phase == "deleting":
            return (_create(name, spec, around),)
        return _update(name, spec, state, around)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, Need], datacenter: str) -> Where:
        """The supervisor namespace, what its supervisor offers to all, and the cluster itself."""
        home = needs["namespace"].key
        return {"namespace": (Api(home, home.name),), "supervisor": (Api(home),), OWN: (Api(Key("tanzu_cluster", name)),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Running, and every node ready."""
        if state.phase in ("failed", "updateFailed"):
            return failed("; ".join(state.messages) or f"it is {state.phase} and gives no reason")
        want = spec.control_plane.count + sum(pool.count for pool in spec.workers.values())
        up = want if state.nodes is None else sum(status == "ready" for status in state.nodes.values())
        if state.phase != "running" or up < want or (state.nodes is not None and len(state.nodes) > want):
            nodes = "" if state.nodes is None else f", {up} of {want} nodes ready"
            return waiting("; ".join((f"{state.phase or 'accepted'}{nodes}", *state.messages[:2])))
        return Readiness(Ready.READY, note=f"{state.version} at {state.api_server}") if state.api_server else READY

    def run(self, step: kind.Step, report: Report) -> None:
        """One call."""
        match step:
            case Create(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).create(manifest)
            case Update(home=home, manifest=manifest):
                # The plan showed each field that another writer changed; applying it is what was confirmed.
                self._clusters.at(home).apply(manifest, force=True)
            case Delete(home=home, name=name, namespace=namespace):
                self._clusters.at(home).delete(API, KIND, name, home.namespace or namespace)
            case _:
                raise AssertionError(step)

    def _with_contents(self, state: State, spec: Spec | None) -> State:
        """Other people's objects inside a cluster that would go."""
        if state.endpoint is None or (spec is not None and spec.namespace == state.namespace):
            return state
        try:
            found = self._clusters.at(state.endpoint).strangers(state.mark.site if state.mark else "")
        except RemoteError as error:
            found = (f"whatever is in it (it can't be asked: {'; '.join(filter(None, (error.problems[0].what, error.problems[0].why)))})",)
        return replace(state, contents=found)

    def _learn(self, wanted: Mapping[str, Spec | None], where: Mapping[Key, Home], states: Mapping[str, State]) -> None:
        """What the namespaces offer, for clusters that will be made or changed; and the authorities' files."""
        for name, spec in wanted.items():
            if spec is None:
                continue
            home = where.get(Key(HOMES[0], spec.namespace))
            if home is not None and (name not in states or spec.namespace not in self._offers):
                self._offers[spec.namespace] = offers.read(home.cluster, home.namespace)
            self._authorities.update({str(file.path): _pem(str(file.path)) for file in spec.trust.values()})

    def _survey_ground(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], states: Mapping[str, State]) -> None:
        """What clusters stand on, where one is to be made or changed; what a supervisor offers to namespaces that are still to be made."""
        if self._vcenter is None or not any(spec is not None and _moves(spec, states.get(name)) for name, spec in wanted.items()):
            return
        self._ground = fit.read(self._vcenter, needs)
        for name in {spec.namespace for spec in wanted.values() if spec is not None} & self._ground.absent:
            supervisor = self._ground.supervisor(name)
            if supervisor is not None:
                self._offers[name] = offers.of_new(self._clusters.at(Endpoint(server=supervisor.endpoint)))


def _moves(spec: Spec, state: State | None) -> bool:
    return state is None or state.mark is None or state.mark.applied != spec.applied()


def _create(name: str, spec: Spec, around: Around) -> Create:
    authorities = _check(spec, around)
    home = around.needs["namespace"].get("endpoint")
    body = form.manifest(name, spec.namespace, spec, authorities)
    return Create(
        name=name, namespace=spec.namespace, home=home, manifest=marked(body, around.mark.seal(spec.applied())),
        changes=differences(None, spec.applied()),
    )


def _update(name: str, spec: Spec, state: State, around: Around) -> Sequence[kind.Step]:
    authorities = _authorities(spec, around.facts)
    want = form.wanted(spec, authorities)
    now = form.view(state.body, next(iter(spec.workers)))
    if offers.matches(str(now.get("version")), spec.version):
        now["version"] = spec.version
    applied = (state.mark.applied if state.mark else None) or {}
    changes = kind.changes(spec, state.mark, differences(_within(now, {**applied, **want}), want))
    if not changes:
        return ()
    _check_changes(spec, state, {change.field for change in changes if change.field in _fields(differences(now, want))}, around)
    step = Roll if any(change.field.rpartition(".")[2] in ROLLING for change in differences(_within(now, want), want)) else Update
    body = marked(form.manifest(name, spec.namespace, spec, authorities), around.mark.seal(spec.applied()))
    return (step(name=name, namespace=spec.namespace, home=state.home, manifest=body, changes=changes),)


def _check_changes(spec: Spec, state: State, fields: set[str], around: Around) -> None:
    """Refuses what a cluster can't become."""
    if fixed := sorted(field for field in fields if field.startswith("network.")):
        raise Refusal("the network of a cluster can't be changed", field=fixed[0], why="it is fixed when the cluster is made",
                      next="make another cluster, move the work, delete this one")
    before = ((state.body.get("topology") or {}).get("controlPlane") or {}).get("count") or 0
    if "control_plane.count" in fields and spec.control_plane.count < before:
        raise Refusal("a control plane can't shrink", field="control_plane.count", why=f"it has {before} nodes", next=f"write {before}")
    if "version" in fields:
        offers.check_step(state.version, spec.version)
    if fields:
        _check(spec, around)


def _check(spec: Spec, around: Around) -> dict[str, str]:
    facts: offers.Facts = around.facts or offers.Facts()
    offers.check(spec, facts.offers.get(spec.namespace, offers.Offer()), around.needs["namespace"].spec)
    fit.check(spec, {peer: other for peer, (other, _) in around.peers.items() if other is not None}, facts.ground)
    return _authorities(spec, facts)


def _authorities(spec: Spec, facts: offers.Facts | None) -> dict[str, str]:
    """Name → PEM of the authorities that the spec names."""
    found = {}
    for name, file in spec.trust.items():
        pem = (facts or offers.Facts()).authorities.get(str(file.path), "!it was not read")
        if pem.startswith("!"):
            raise Refusal(f"{file.path} is no certificate authority", field=f"trust.{name}", why=pem[1:], next="give a PEM file")
        found[name] = pem
    return found


def _pem(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - the path is text in the facts
            text = file.read(1 << 20)
    except (OSError, ValueError) as error:
        return f"!it can't be read: {getattr(error, 'strerror', None) or 'it is not text'}"
    return text if "-----BEGIN CERTIFICATE-----" in text else "!no certificate in PEM form in it"


def _fields(changes: Sequence[Change]) -> set[str]:
    return {change.field for change in changes}


def _within(now: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `now` that `shape` speaks of: what the supervisor filled in by itself is its own affair."""
    return {
        name: _within(value, shape[name]) if isinstance(value, Mapping) and isinstance(shape[name], Mapping) else value
        for name, value in now.items() if name in shape
    }


def _counts(state: State, name: str, wanted: Mapping[str, Spec | None], *, others: bool) -> bool:
    """Whether it is one of those asked for, or another one of ours."""
    mine = state.mark is not None and state.mark.address == f"tanzu_cluster/{name}"
    if name not in wanted:
        return others and mine
    spec = wanted[name]
    return mine or (spec is not None and spec.namespace == state.namespace)


def _misplaced(state: State, spec: Spec | None) -> bool:
    return spec is not None and state.namespace != spec.namespace


def _state(obj: Mapping[str, Any], home: Home) -> State:
    status = obj.get("status") or {}
    phase = "deleting" if obj["metadata"].get("deletionTimestamp") else str(status.get("phase") or "")
    name, addresses = obj["metadata"]["name"], (status.get("clusterApiStatus") or {}).get("apiEndpoints") or ()
    address = next((f"{a.get('host')}:{a.get('port')}" for a in addresses if isinstance(a, dict)), "")
    endpoint = replace(home.endpoint, guest=name) if phase in UP and address else None
    nodes = status.get("nodeStatus")
    return State(
        mark=mark_of(obj), namespace=home.key.name, phase=phase, body=obj.get("spec") or {}, home=home.endpoint,
        messages=_messages(status), nodes=dict(nodes) if isinstance(nodes, dict) else None, api_server=safe(address, 80), endpoint=endpoint,
    )


def _messages(status: Mapping[str, Any]) -> tuple[str, ...]:
    """Why it isn't well, from its conditions and add-ons."""
    conditions = [c for c in status.get("conditions") or () if isinstance(c, dict) and c.get("status") == "False"]
    found = [safe(c.get("message") or c.get("reason"), 200) for c in conditions if c.get("severity") != "Info" and c.get("type") != "UpdatesAvailable"]
    addons = [a for a in (status.get("addons") or {}).values() if isinstance(a, dict)] if isinstance(status.get("addons"), dict) else []
    found += [f"{safe(a.get('name'), 60)}: {safe(e, 200)}" for a in addons if (e := a.get("status")) and e not in ("applied", "unmanaged")]
    return tuple(text for text in dict.fromkeys(found) if text)
