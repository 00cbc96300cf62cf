"""The add-on: observe, decide, act. Source: what users of VKS
3.5 to 3.7 show of `addons.kubernetes.vmware.com/v1alpha1`; its Go types are not public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from bfinfra.backends.kubernetes.marks import mark_of, mark_only, marked, selector
from bfinfra.backends.words import safe
from bfinfra.kinds.audit import of_field
from bfinfra.kinds.cluster_locator import Cluster, ClusterLocator
from bfinfra.kinds.supervisor.base.variables import text
from bfinfra.kinds.supervisor.base.words import Fields, Object, at, within
from bfinfra.kinds.supervisor.vks_addon import manifest as form
from bfinfra.kinds.supervisor.vks_addon.manifest import ADDONS, API, CONFIG, INSTALL, OF_CLUSTER, STANDING
from bfinfra.kinds.supervisor.vks_addon.spec import Spec
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Forbidden, Missing, Refusal
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import CLUSTERS as HERE
from bfinfra.model.rights import Api, PrivilegePlaces, Use, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

LIVES_IN = ("supervisor_namespace",)
UNSEEN = "add-ons that the file no longer names are not seen"


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """`install` and `config`: the specs of its objects, `config` None where there is none; `missing`: what
    it still waits for, "" where it is ready.
    """

    namespace: Annotated[str, Ref("supervisor_namespace")]
    cluster: Annotated[str, Ref("vks_cluster", optional=True)]
    home: Endpoint
    install: Fields
    config: Fields | None = None
    config_mark: str = ""
    uids: Mapping[str, str] = field(default_factory=dict)
    """By kind of its objects."""
    missing: str = ""
    metadata: Fields = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Configure(Step):
    """write the settings of add-on {addon} of cluster {cluster}"""

    rights = (may("get patch create", f"addonconfigs.{ADDONS}", "namespace"),)
    cluster: str
    addon: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Install(Step):
    """install add-on {addon} in cluster {cluster}"""

    rights = (may("create", f"addoninstalls.{ADDONS}", "namespace"),)
    cluster: str
    addon: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update add-on {addon} of cluster {cluster}"""

    rights = (may("get patch", f"addoninstalls.{ADDONS}", "namespace"),)
    cluster: str
    addon: str
    home: Endpoint
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reset(Step):
    """remove the settings of add-on {addon} from cluster {cluster}"""

    rights = (may("delete", f"addonconfigs.{ADDONS}", "namespace"),)
    uses = (Use.APPLY, Use.DESTROY)
    cluster: str
    addon: str
    namespace: str
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """remove add-on {addon} from cluster {cluster}"""

    destructive = True
    rights = (may("delete", f"addoninstalls.{ADDONS}", "namespace"),)
    uses = (Use.DESTROY,)
    name: str
    cluster: str
    addon: str
    namespace: str
    home: Endpoint


class VksAddon(kind.Kind[Spec, State]):
    """An add-on of a cluster of the vSphere Kubernetes Service."""

    document = Document.CONSOLIDATED
    deadline = 1800
    step_types = (Configure, Install, Update, Reset, Remove)
    survey_privileges = (may("list", f"addoninstalls.{ADDONS}", HERE, optional=UNSEEN),)
    resource_privileges = (
        may("list", f"addoninstalls.{ADDONS} addonconfigs.{ADDONS} clusteraddons.{ADDONS}", "namespace"),
    )

    def __init__(self, clusters: Clusters, site: Site) -> None:
        self._clusters, self._site = clusters, site.name
        self._locator = ClusterLocator(clusters, LIVES_IN)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """One list for each supervisor namespace, and two more where it has an add-on."""
        placed = {name: _namespace(spec, needs) if spec else None for name, spec in wanted.items()}
        named = set(filter(None, placed.values()))
        answers = self._locator.ask(
            placed,
            needs,
            lambda cluster: self._read(cluster, wanted, must=cluster.key.name in named),
            include_unlisted=include_unlisted,
        )
        states: dict[str, State] = {}
        for key, found in answers.found.items():
            for seen_name, state in found:
                if seen_name in wanted or include_unlisted:
                    self._locator.saw(seen_name, key)
                    states.setdefault(seen_name, state)
        return Observation(states, None, answers.unreadable)

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every AddonInstall that selects one cluster by its name."""
        answers = self._locator.ask({}, needs, _all, include_unlisted=True)
        for name, state in (each for found in answers.found.values() for each in found):
            if state.cluster:
                view = form.view(state.install, (state.config or {}).get("values"))
                yield Description(name, view, state, {})

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Steps for the add-on. Its settings are written after it and removed before it, so that none
        are left without it.
        """
        if spec is None:
            return tuple(_out(name, state)) if state is not None and not state.going else ()
        return tuple(_in(name, spec, None if state is not None and state.going else state, context))

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The supervisor namespace of its cluster."""
        cluster = needs["cluster"].spec or needs["cluster"].state
        return {"namespace": (Api(Key("supervisor_namespace", cluster.namespace), cluster.namespace),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when the status of the cluster's add-on is ready."""
        return waiting(state.missing) if state.missing else READY

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """Return who changed it, from managedFields; unknown for its settings."""
        paths = {
            "addon": ("addonRef", "name"),
            "cluster": ("clusters",),
            "release": ("releaseFilter",),
            "keep": ("stopMatchingBehavior",),
        }
        return {
            name: {
                each: found
                for each in fields
                if state is not None
                and each in paths
                and (found := of_field({"metadata": state.metadata}, "spec", *paths[each]))
            }
            for name, (state, fields) in asked.items()
        }

    def run(self, step: Step, report: Report) -> None:
        """Run a step: one call."""
        match step:
            case Configure(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).apply(manifest, force=True)
            case Install(home=Endpoint() as home, manifest=manifest):
                self._clusters.at(home).create(manifest)
            case Update(home=home, manifest=manifest):
                self._clusters.at(home).apply(manifest, force=True)
            case Reset(home=home, cluster=cluster, addon=addon, namespace=namespace):
                self._clusters.at(home).delete(API, CONFIG, f"{cluster}-{addon}", namespace)
            case Remove(home=home, name=name, namespace=namespace):
                self._clusters.at(home).delete(API, INSTALL, name, namespace)
            case _:
                raise AssertionError(step)

    def _read(
        self, cluster: Cluster, wanted: Mapping[str, Spec | None], *, must: bool
    ) -> list[tuple[str, State]]:
        space = cluster.namespace
        try:
            installs = cluster.client.list(API, INSTALL, space, "" if must else selector(self._site))
        except Missing:
            return []
        except Forbidden:
            if must:
                raise
            return []
        mine = {name: each for each in installs if (name := self._name(each, wanted))}
        configs = _by_name(cluster.client.list(API, CONFIG, space)) if mine or must else {}
        addons = _by_name(cluster.client.list(API, STANDING, space)) if mine else {}
        return [(name, _state(each, cluster, configs, addons)) for name, each in mine.items()]

    def _name(self, obj: Fields, wanted: Mapping[str, Spec | None]) -> str:
        mark, called = mark_of(obj), str(at(obj, "metadata").get("name"))
        own = mark.name_of(self._site, "vks_addon") if mark is not None else None
        return own or (called if called in wanted else "")


def _all(cluster: Cluster) -> list[tuple[str, State]]:
    """Every add-on of a supervisor namespace, under its object's name."""
    space = cluster.namespace
    try:
        installs, configs, addons = (
            _by_name(cluster.client.list(API, each, space)) for each in (INSTALL, CONFIG, STANDING)
        )
    except (Missing, Forbidden):
        return []
    return [(name, _state(each, cluster, configs, addons)) for name, each in installs.items()]


def _namespace(spec: Spec, needs: Mapping[Key, ResolvedRef]) -> str | None:
    need = needs.get(Key("vks_cluster", spec.cluster))
    cluster = (need.spec or need.state) if need is not None else None
    return str(cluster.namespace) if cluster is not None else None


def _by_name(objects: Iterable[Object]) -> dict[str, Object]:
    return {str(each["metadata"]["name"]): each for each in objects}


def _state(
    install: Object, cluster: Cluster, configs: Mapping[str, Object], addons: Mapping[str, Object]
) -> State:
    of = next((at(each, "selector", "matchLabels") for each in form.selected(install)), {})
    name, addon = str(of.get(OF_CLUSTER) or ""), str(at(install, "spec", "addonRef").get("name"))
    pair = f"{name}-{addon}"
    config = configs.get(pair)
    mark = mark_of(config) if config else None
    return State(
        mark=mark_of(install),
        namespace=cluster.key.name,
        cluster=name,
        home=cluster.endpoint,
        install=at(install, "spec"),
        config=at(config, "spec") if config else None,
        config_mark=mark.address if mark else "",
        uids={
            what: str(at(each, "metadata").get("uid", ""))
            for what, each in ((INSTALL, install), (CONFIG, config))
        },
        going=bool(install["metadata"].get("deletionTimestamp")),
        missing=_missing(addons.get(pair)),
        metadata={"managedFields": install["metadata"].get("managedFields") or []},
    )


def _missing(addon: Object | None) -> str:
    if addon is None:
        return "the cluster has no such add-on yet"
    for each in at(addon, "status").get("conditions") or ():
        if isinstance(each, dict) and each.get("type") == "Ready":
            if each.get("status") == "True":
                return ""
            return safe(each.get("message") or each.get("reason") or "it is not ready", 200)
    return "its status is not reported yet"


def _in(name: str, spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    cluster = context.needs["cluster"]
    where = str((cluster.spec or cluster.state).namespace)
    mark = context.mark.committed(spec.applied())
    install, config = marked(form.install(name, where, spec), mark), marked(form.config(where, spec), mark)
    place: Any = {"cluster": spec.cluster, "addon": spec.addon}
    if state is None:
        home, changes = cluster.get("home"), differences(None, spec.applied())
        yield Install(**place, home=home, manifest=install, changes=changes)
        if spec.values:
            yield Configure(**place, home=home, manifest=config, changes=changes)
        return
    if compare.adopting(state.mark):
        found = compare.changes(spec, state.mark)
        if spec.values and state.config is not None and not state.config_mark:
            settings = mark_only(config, mark, state.uids[CONFIG])
            yield Configure(**place, home=state.home, manifest=settings, changes=found)
        its = mark_only(install, mark, state.uids[INSTALL])
        yield Update(**place, home=state.home, manifest=its, changes=found)
        return
    want = form.view(install["spec"], spec.values)
    now = form.view(state.install, (state.config or {}).get("values"))
    had = text(state.applied.get("values") or {})
    now["values"] = within(now.get("values") or {}, {**had, **text(spec.values)})
    drift = differences(now, want)
    found = compare.changes(spec, state.mark, drift)
    if not found:
        return
    _fixed({change.field for change in drift})
    if any(change.field.startswith("values") for change in drift):
        if spec.values:
            yield Configure(**place, home=state.home, manifest=config, changes=found)
        else:
            yield Reset(**place, namespace=state.namespace, home=state.home, changes=found)
    others = any(not change.field.startswith("values") for change in drift)
    if others or state.mark is None or state.mark.applied != spec.applied():
        yield Update(**place, home=state.home, manifest=install, changes=found)


def _fixed(fields: set[str]) -> None:
    for name in ("cluster", "addon"):
        if name in fields:
            raise Refusal(
                f"an add-on can't become that of another {name}",
                field=name,
                why="its settings are called after both",
                next="give it a name of its own beside this one, then take this one out",
            )


def _out(name: str, state: State) -> Iterator[Step]:
    addon = str(at(state.install, "addonRef").get("name"))
    change = (Change("addon", addon, None),)
    place: Any = {"cluster": state.cluster, "addon": addon, "namespace": state.namespace, "home": state.home}
    if state.config is not None and state.config_mark == f"vks_addon/{name}":
        yield Reset(**place, changes=change)
    yield Remove(name=name, **place, changes=change)
