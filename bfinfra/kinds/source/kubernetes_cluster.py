"""Any Kubernetes cluster that is there already, by kubeconfig: a place for namespaces, tokens and
workloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bfinfra.model import kind, resource
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, RemoteError
from bfinfra.model.kind import Observation
from bfinfra.model.readiness import Readiness, Ready
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import API, Api, PrivilegePlaces
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters


class Spec(resource.Spec):
    """What a user writes for one cluster."""

    awaits: ClassVar = {"kubeconfig": "make one with an account of the cluster, once the cluster is there"}

    kubeconfig: Secret
    """Reference whose value is a kubeconfig with a CA and a token or client certificate."""
    context: str = ""
    """Context in it; empty = its current one."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A cluster that answered. `version`: as it says; `url`: of its API."""

    endpoint: Endpoint
    version: str
    url: str = ""

    def answers_at(self) -> str:
        """Its API."""
        return self.url.removeprefix("https://").partition("/")[0]


class KubernetesCluster(kind.Source[Spec, State]):
    """Any Kubernetes cluster, by kubeconfig."""

    document = Document.ON_KUBERNETES
    reaches = True

    def __init__(self, clusters: Clusters, site: Site) -> None:
        self._clusters = clusters
        # A destroy wants nothing, and yet must get into the clusters that the file names.
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
        """Asks each for its version; one that doesn't answer is unreadable, and with it all that is in it."""
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
                    raise  # the caller tries again
                unreadable[name] = error if isinstance(error, RemoteError) else str(error)
        return Observation(states, awaited, unreadable)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """None; waits for a kubeconfig that isn't there yet."""
        if spec is not None and (problem := (context.facts or {}).get(name)):
            raise held(problem, "kubeconfig")
        return ()

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its API."""
        return {API: (Api(Key("kubernetes_cluster", name)),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """It answered."""
        return Readiness(Ready.READY, note=state.version)
