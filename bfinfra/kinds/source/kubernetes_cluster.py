"""Any existing Kubernetes cluster, by its kubeconfig: a place for namespaces, tokens and workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bfinfra.kinds.cluster_checks import cluster_checks
from bfinfra.kinds.server_checks import server_checks
from bfinfra.model import kind, resource
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, RemoteError
from bfinfra.model.finding import Finding, warning
from bfinfra.model.kind import Observation
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import API, Api, PrivilegePlaces
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.trust import Server, host_and_port

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters
    from bfinfra.kinds.checks import CheckContext


class Spec(resource.Spec):
    """The desired state of one cluster."""

    awaits: ClassVar = {"kubeconfig": "make one with an account of the cluster, once the cluster is there"}

    kubeconfig: Secret
    """Reference whose value is a kubeconfig with a CA and a token or client certificate."""
    context: str = ""
    """Context in the kubeconfig; empty = its current one."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A cluster that answered. `version`: as it reports it; `url`: of its API."""

    endpoint: Endpoint
    version: str
    url: str = ""

    def answers_at(self) -> str:
        """Its API."""
        return self.url.removeprefix("https://").partition("/")[0]


def _enter(context: CheckContext, key: Key) -> ClusterClient:
    spec = context.site.resources[key]
    return context.clusters.at(Endpoint(kubeconfig=spec.kubeconfig, context=spec.context))


def _servers(context: CheckContext) -> Iterator[Server]:
    for key in context.of("kubernetes_cluster"):
        try:
            access = _enter(context, key).access()
        except BfinfraError:
            continue  # `clusters.entrance` reports it
        yield Server(str(key), *host_and_port(access.address), access.trust)


def files(context: CheckContext) -> Iterator[Finding]:
    """A finding per kubeconfig: whether only its owner can read it."""
    for key, spec in context.of("kubernetes_cluster").items():
        if spec.kubeconfig.way == "file":
            path = spec.kubeconfig.sources.path(str(spec.kubeconfig.target))
            if path.exists() and path.stat().st_mode & 0o077:
                yield warning(
                    key, f"{path} can be read by others", "it holds a token or a key", f"chmod 600 {path}"
                )


class KubernetesCluster(kind.Source[Spec, State]):
    """Any existing Kubernetes cluster, by its kubeconfig."""

    document = Document.ON_KUBERNETES
    undescribed = "it is a kubeconfig, and secret"
    reaches = True
    checks: ClassVar = {
        "local.files": files,
        **server_checks(_servers),
        **cluster_checks("kubernetes_cluster", _enter),
    }

    def __init__(self, clusters: Clusters, site: Site) -> None:
        self._clusters = clusters
        # On destroy nothing is wanted, but the clusters in the file are still needed to delete what is in
        # them.
        self._named = {
            key.name: spec for key, spec in site.resources.items() if key.kind == "kubernetes_cluster"
        }

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the version of each cluster. One that doesn't answer is unreadable, and so is everything in
        it.
        """
        states: dict[str, State] = {}
        unreadable: dict[str, str | RemoteError] = {}
        awaited: dict[str, Absent] = {}
        specs = (
            {**self._named, **{name: spec for name, spec in wanted.items() if spec}}
            if include_unlisted
            else wanted
        )
        for name, spec in specs.items():
            if spec is None:
                continue
            file = spec.kubeconfig.file
            if name in wanted and file and (problem := absent(file, spec.awaits["kubeconfig"])):
                awaited[name] = problem
                continue
            endpoint = Endpoint(kubeconfig=spec.kubeconfig, context=spec.context)
            try:
                cluster = self._clusters.at(endpoint)
                states[name] = State(endpoint=endpoint, version=cluster.version(), url=cluster.url)
            except BfinfraError as error:
                if isinstance(error, RemoteError) and len(specs) == 1:
                    raise  # the caller retries
                unreadable[name] = error if isinstance(error, RemoteError) else str(error)
        return Observation(states, awaited, unreadable)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """No steps. Raises Awaited for a kubeconfig that doesn't exist yet."""
        if spec is not None and (problem := (context.facts or {}).get(name)):
            raise held(problem, "kubeconfig")
        return ()

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its API."""
        return {API: (Api(Key("kubernetes_cluster", name)),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready, as it answered."""
        return Readiness(Ready.READY, note=state.version)
