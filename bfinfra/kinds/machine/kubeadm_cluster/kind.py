"""The kind kubeadm_cluster: observe, readiness, run."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets as random
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes import kubeconfig
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.kinds.linux import Answers, Commands
from bfinfra.kinds.machine.base import Adopt, LinuxSoftware, Reading
from bfinfra.kinds.machine.kubeadm_cluster import decide
from bfinfra.kinds.machine.kubeadm_cluster.spec import Spec
from bfinfra.kinds.machine.kubeadm_cluster.state import (
    ADMIN,
    LOOK,
    NAME,
    KubeadmFacts,
    Node,
    State,
    read,
    token_id,
)
from bfinfra.kinds.machine.kubeadm_cluster.steps import (
    Forget,
    Init,
    Join,
    Leave,
    Network,
    Prepare,
    Reset,
    WriteRecord,
)
from bfinfra.kinds.sent_files import digest, sent
from bfinfra.model import foreign
from bfinfra.model.awaited import away
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, Problem, RemoteError
from bfinfra.model.kind import Report
from bfinfra.model.readiness import Readiness, Ready, waiting
from bfinfra.model.redact import hide
from bfinfra.model.refs import Key
from bfinfra.model.rights import API, Api, PrivilegePlaces
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import Play
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.backends.kubernetes import ClusterClient, Clusters

__all__ = ["KubeadmCluster", "Spec", "State"]
SYSTEM, NOTED = "kube-system", "bfinfra-pod-network"
"""The ConfigMap entry that notes which manifest of a pod network was applied."""
GOOD_FOR = timedelta(minutes=30)
LETTERS = string.ascii_lowercase + string.digits
TASKS = {Prepare: "prepare", Init: "init", WriteRecord: "record", Reset: "reset"}


class KubeadmCluster(LinuxSoftware[Spec, State, Node]):
    """A Kubernetes cluster made by kubeadm on Linux machines."""

    document = Document.PVRDMA
    deadline = 1800
    step_types = (Prepare, Init, Network, Join, Forget, Leave, WriteRecord, Adopt, Reset)
    name, role = NAME, "kubeadm"

    def __init__(self, hosts: LinuxHosts, clusters: Clusters, site: Site) -> None:
        super().__init__(hosts, site)
        self._clusters = clusters

    def commands(self, host: str, specs: Sequence[Spec]) -> Commands:
        """The commands for a machine. A worker of the file can't be a control plane of this site; any other
        machine may be one.
        """
        return LOOK if any(host in spec.workers for spec in specs) else LOOK | ADMIN

    def read(self, host: str, answers: Answers) -> Node:
        """From the machine's answers."""
        return read(host, answers)

    def packages(self, spec: Spec) -> Mapping[str, LocalFile]:
        """The packages of Kubernetes, if it is installed from files."""
        return {f"packages.{at}": file for at, file in enumerate(spec.packages)}

    def digest(self, spec: Spec) -> str:
        """The digest of all packages; "" if there are none, or one can't be read."""
        found = [digest(each.path) for each in spec.packages]
        return hashlib.sha256(",".join(found).encode()).hexdigest() if found and all(found) else ""

    def states(
        self, wanted: Mapping[str, Spec | None], reading: Reading[Node], *, include_unlisted: bool
    ) -> Mapping[str, State]:
        """The clusters with a control plane: their nodes, and the objects of others in a cluster that would
        be deleted.
        """
        states = {}
        for name, on_machines in super().states(wanted, reading, include_unlisted=include_unlisted).items():
            spec = wanted.get(name)
            state = _state(spec, on_machines)
            states[name] = (
                self._entered(name, state, goes=include_unlisted and spec is None)
                if state.endpoint
                else state
            )
        return states

    def facts(self, specs: Mapping[str, Spec], reading: Reading[Node]) -> KubeadmFacts:
        """Adds the manifests of the pod networks."""
        known = super().facts(specs, reading)
        return KubeadmFacts(
            known.machines,
            known.found,
            known.packages,
            known.away,
            cni={name: digest(spec.cni.path) for name, spec in specs.items()},
            cni_away={name: gone for name, spec in specs.items() if (gone := away(spec, {"cni": spec.cni}))},
        )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide.steps(spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its API."""
        return {API: (Api(Key("kubeadm_cluster", name)),)}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when every machine is a node, and every node is ready."""
        if state.nodes is None:
            return waiting(state.silent or "its control plane is not initialised yet")
        names = {host: state.on[host].name for host in spec.hosts if host in state.on}
        if lacking := [host for host in spec.hosts if not state.nodes.get(names.get(host, ""))]:
            return waiting(
                f"{len(spec.hosts) - len(lacking)} of {len(spec.hosts)} nodes are ready: not "
                f"{', '.join(lacking)}"
            )
        return Readiness(
            Ready.READY, note=f"{state.version} at {state.answers_at()}, {len(spec.hosts)} nodes"
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step: a play, or the calls that apply a manifest."""
        match step:
            case Join(home=Endpoint() as home):
                self._join(step, self._clusters.at(home), home)
            case Forget():
                self._clusters.at(step.home).delete("v1", "Secret", _secret(step.token), SYSTEM)
            case Network(home=Endpoint() as home):
                self._network(step, self._clusters.at(home))
            case Leave():
                if step.control_plane is not None:
                    self._hosts.play(
                        Play(
                            self.role,
                            {step.control_plane: {"nodes": list(step.nodes), "drain": list(step.drain)}},
                            tasks="leave",
                        )
                    ).check()
                self._play(step, step.todo, "reset")
            case Prepare():
                each = {
                    host: {**todo, "packages": [sent(file) for file in todo["packages"]]}
                    for host, todo in step.todo.items()
                }
                self._play(step, each, TASKS[Prepare])
            case Init() | WriteRecord() | Reset():
                self._play(step, step.todo, TASKS[type(step)])
            case Adopt():
                self._play(step, step.records, "begin")
            case _:
                raise AssertionError(step)

    def _join(self, step: Join, cluster: ClusterClient, home: Endpoint) -> None:
        """Joins machines with a bootstrap token for this step only. It is created in the cluster, is never on
        a command line, and is deleted after the step. A killed run's token expires, or the next run deletes
        it.
        """
        secret = "".join(random.choice(LETTERS) for _ in range(16))
        until = (datetime.now(UTC) + GOOD_FOR).strftime("%Y-%m-%dT%H:%M:%SZ")
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": _secret(step.token), "namespace": SYSTEM},
            "stringData": {
                "token-id": step.token,
                "token-secret": hide(secret),
                "expiration": until,
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
            },
        }
        if step.left:
            cluster.delete("v1", "Secret", _secret(step.token), SYSTEM)
        cluster.create(manifest)
        try:
            texts = {"discovery": _discovery(home, f"{step.token}.{secret}")}
            self._play(step, step.todo, "join", texts=texts)
        finally:
            cluster.delete("v1", "Secret", _secret(step.token), SYSTEM)

    def _network(self, step: Network, cluster: ClusterClient) -> None:
        """Applies the manifest's objects in their order, then notes which manifest that was."""
        for manifest in _manifests(step.path):
            cluster.apply(marked(manifest, step.mark.pending), force=True)
        note = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NOTED, "namespace": SYSTEM},
            "data": {"sha256": step.sha256},
        }
        cluster.apply(marked(note, step.mark.pending), force=True)

    def _entered(self, name: str, state: State, *, goes: bool) -> State:
        """The state with what its API reports. If a cluster doesn't answer, that part is unknown, and the
        cluster is not ready.
        """
        assert state.endpoint is not None
        cluster = self._clusters.at(state.endpoint)
        try:
            nodes = {str(obj["metadata"]["name"]): _ready(obj) for obj in cluster.list("v1", "Node")}
            noted = cluster.get("v1", "ConfigMap", NOTED, SYSTEM)
            left = cluster.get("v1", "Secret", _secret(token_id(self._site, name)), SYSTEM)
            found: dict[str, Any] = {
                "token": left is not None,
                "nodes": nodes,
                "cni": str(((noted or {}).get("data") or {}).get("sha256") or ""),
                "version": cluster.version(),
                "url": cluster.url,
            }
            if goes:
                found["contents"] = cluster.unmanaged(self._site)
        except RemoteError as error:
            found = {"silent": f"its API does not answer: {error.problems[0].what}"}
            if goes:
                found["contents"] = ("its contents, which can't be read (its API does not answer)",)
        return replace(state, **found)


def _state(spec: Spec | None, state: State) -> State:
    """The state with what its machines report of the cluster."""
    first = (
        spec.control_plane
        if spec
        else next((host for host, node in state.on.items() if node.role == "control_plane"), "")
    )
    admin = state.on[first].admin if first in state.on and state.on[first].initialised else None
    return replace(state, control_plane=first, endpoint=Endpoint(kubeconfig=admin) if admin else None)


def _secret(token: str) -> str:
    """The name that Kubernetes requires for a bootstrap token's Secret."""
    return f"bootstrap-token-{token}"


def _ready(obj: Mapping[str, Any]) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in conditions
        if isinstance(each, dict)
    )


def _manifests(path: str) -> Iterator[dict[str, Any]]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = foreign.documents(file.read())
    except (OSError, ValueError) as error:
        raise BfinfraError(
            Problem(
                "the manifest of the pod network can't be read",
                path,
                getattr(error, "strerror", None) or str(error),
            )
        ) from None
    for each in found:
        if isinstance(each, dict) and each.get("kind"):
            yield each


def _discovery(home: Endpoint, token: str) -> str:
    """A kubeconfig with the cluster's authority and address, and the bootstrap token as its user's."""
    assert home.kubeconfig is not None
    access = kubeconfig.read(home.kubeconfig)
    authority = base64.b64encode((access.trust.ca_pem or "").encode()).decode()
    cluster = {"server": access.url, "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "join",
            "clusters": [{"name": "join", "cluster": cluster}],
            "users": [{"name": "join", "user": {"token": token}}],
            "contexts": [{"name": "join", "context": {"cluster": "join", "user": "join"}}],
        }
    )
