"""A kind of workload clusters wired to the engine by hand: no peer has supervisor namespaces, so a plain namespace
stands in for one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.found import Peers
from peers.site_files import RETRY, SiteFile

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.transport import Middleware, Transport
from bfinfra.engine.apply import Apply, Options
from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState, make
from bfinfra.kinds.supervisor.supervisor_namespace import kind as supervisor_namespace
from bfinfra.model import kind, resource
from bfinfra.model.context import ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.kind import Observation
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    endpoint: Endpoint


class Spaces(kind.Source[supervisor_namespace.Spec, State]):
    """Stands in for supervisor_namespace: a namespace that is there."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        secret = Secret("env", "PEERS_KUBECONFIG", Sources(env={"PEERS_KUBECONFIG": kubeconfig.read_text()}))
        self._states = {name: State(endpoint=Endpoint(kubeconfig=secret, namespace=name))}

    def observe(
        self, wanted: Mapping[str, Any], needs: Mapping[Key, ResolvedRef], *, include_unlisted: bool = True
    ) -> Observation:
        return Observation(self._states)


class Engine(SiteFile):
    """A site file with clusters of one kind in one namespace, and the engine on the two kinds."""

    name: str
    """The kind of its clusters."""

    def __init__(self, source: Path, folder: Path, peers: Peers, own: str, *middleware: Middleware) -> None:
        super().__init__(source, folder)
        self.given["site"] += f"-{own}"
        ((first, space),) = self.given["supervisor_namespace"].items()
        self.space = f"{first}-{own}"
        self.given["supervisor_namespace"] = {self.space: space}
        self.cluster["namespace"] = self.space
        self.transport = Transport(middleware=middleware)
        self.clusters = Clusters(self.transport, None)
        self.kinds = {
            "supervisor_namespace": Spaces(self.space, peers.kubeconfig),
            self.name: self.made(self.clusters),
        }

    @abstractmethod
    def made(self, clusters: Clusters) -> kind.Kind[Any, Any]:
        """The kind."""

    @property
    def cluster(self) -> dict[str, Any]:
        (found,) = self.given[self.name].values()
        return found  # type: ignore[no-any-return]  # a mapping of the site's file

    def look(self, *, destroy: bool = False) -> tuple[Plan, Any, Any]:
        site = self.load()
        desired = DesiredState.of(site, destroy=destroy)
        world = survey(self.kinds, desired.wanted, RETRY)
        return make(site, desired, world, self.kinds), desired, world

    def plan(self) -> Plan:
        return self.look()[0]

    def run(self, *, destroy: bool = False, deadline: float = 20) -> Any:
        plan, desired, world = self.look(destroy=destroy)
        assert not plan.problems, plan.problems
        return Apply(
            plan, desired, world, self.kinds, Options(retry=RETRY, deadline=deadline), lambda _: None
        ).run()

    def close(self) -> None:
        self.clusters.close()
        self.transport.close()
