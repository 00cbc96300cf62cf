"""Kubeadm and kubectl on the machines: files as data, and the clusters that follow them. What is asked for
beyond that is refused by name.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from bfinfra.sandbox.linux.machine import Machine, Node
from bfinfra.sandbox.linux.runtimes import canonical

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster import Cluster

ETC, ADMIN, KUBELET, AUTHORITY = (
    "/etc/kubernetes",
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/pki/ca.crt",
)
FLAGS = (
    "--kubernetes-version",
    "--pod-network-cidr",
    "--service-cidr",
    "--control-plane-endpoint",
    "--cri-socket",
    "--ignore-preflight-errors",
    "--token-ttl",
    "--discovery-file",
)
Result = tuple[str, int]


@dataclass(frozen=True)
class Planned:
    """The cluster that `kubeadm init` makes on a machine. `address`: "host:port" of its API; `token`: its
    administrator's.
    """

    name: str
    address: str
    version: str
    token: str = field(repr=False)
    ca_pem: str = field(repr=False)

    def config(self, token: str) -> str:
        """A kubeconfig; without a user's token where that is ""."""
        authority = base64.b64encode(self.ca_pem.encode()).decode()
        user = (
            {"token": token}
            if token
            else {"client-certificate": "/var/lib/kubelet/pki/kubelet-client-current.pem"}
        )
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": self.name,
                "clusters": [
                    {
                        "name": self.name,
                        "cluster": {
                            "server": f"https://{self.address}",
                            "certificate-authority-data": authority,
                        },
                    }
                ],
                "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": "user"}}],
                "users": [{"name": "user", "user": user}],
            },
            width=1 << 20,
        )


@dataclass(frozen=True)
class Kubernetes:
    """`planned`: by machine. `cluster(name)`: the running cluster; `up(name, machines that joined)` and
    `down(name)` are called when the files change; `followed()` after that.
    """

    planned: Mapping[str, Planned] = field(default_factory=dict)
    cluster: Callable[[str], Cluster | None] = lambda _: None
    up: Callable[[str, set[str]], None] = lambda _name, _joined: None
    down: Callable[[str], None] = lambda _: None
    followed: Callable[[], None] = lambda: None

    def run(self, program: str, machine: Machine, words: list[str]) -> Result:
        """Run kubeadm and return its output and exit code."""
        if program == "kubectl":
            return self._kubectl(machine, words)
        acts: dict[str, Callable[[Machine, dict[str, str]], Result]] = {
            "init": self._init,
            "join": self._join,
            "reset": _reset,
        }
        if not words or words[0] not in acts:
            return f"kubeadm {' '.join(words)}: the sandbox's machines only init, join and reset\n", 2
        flags = {words[at]: words[at + 1] for at in range(1, len(words) - 1) if words[at] in FLAGS}
        return acts[words[0]](machine, flags)

    def listens(self, address: str, port: int) -> bool:
        """Return whether the API of a running cluster answers there."""
        return any(
            each.address == f"{address}:{port}" and self.cluster(each.name) is not None
            for each in self.planned.values()
        )

    def images_on(self, node: str) -> frozenset[str]:
        """Canonical names of the images that pods on a node run."""
        clusters = filter(None, (self.cluster(each.name) for each in self.planned.values()))
        pods = (
            pod
            for cluster in clusters
            for pod in cluster.all("", "pods")
            if pod.get("spec", {}).get("nodeName") == node
        )
        return frozenset(
            canonical(container["image"]) for pod in pods for container in pod["spec"]["containers"]
        )

    def follow(self, machines: Mapping[str, Machine]) -> None:
        """Bring the clusters to the state in their machines' files."""
        for first, planned in self.planned.items():
            if machines[first].read(ADMIN) is None:
                self.down(planned.name)
            else:
                self.up(
                    planned.name,
                    {
                        name
                        for name, each in machines.items()
                        if f"https://{planned.address}".encode() in (each.read(KUBELET) or b"")
                    },
                )
        self.followed()

    def _init(self, machine: Machine, flags: dict[str, str]) -> Result:
        planned = self.planned.get(machine.name)
        if planned is None:
            return "the sandbox's world has no cluster whose kubeadm runs on this machine\n", 1
        if machine.read(KUBELET) is not None:
            return f"[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: {KUBELET} already exists\n", 1
        if flags.get("--kubernetes-version", planned.version) != planned.version:
            return f"this version of kubeadm only supports deploying clusters with {planned.version}\n", 1
        _put(
            machine,
            {AUTHORITY: planned.ca_pem, ADMIN: planned.config(planned.token), KUBELET: planned.config("")},
        )
        return "Your Kubernetes control-plane has initialized successfully!\n", 0

    def _join(self, machine: Machine, flags: dict[str, str]) -> Result:
        if machine.read(KUBELET) is not None:
            return f"[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: {KUBELET} already exists\n", 1
        try:
            config = yaml.safe_load(machine.read(flags["--discovery-file"]) or b"")
            server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        except (KeyError, TypeError, IndexError, yaml.YAMLError):
            return "discovery: the file holds no cluster with a token\n", 1
        planned = next((each for each in self.planned.values() if f"https://{each.address}" == server), None)
        cluster = self.cluster(planned.name) if planned else None
        if planned is None or cluster is None:
            return f"couldn't validate the identity of the API Server: {server} does not answer\n", 1
        if token not in _tokens(cluster):
            return "Unauthorized: the bootstrap token is not known\n", 1
        _put(machine, {AUTHORITY: planned.ca_pem, KUBELET: planned.config("")})
        return "This node has joined the cluster\n", 0

    def _kubectl(self, machine: Machine, words: list[str]) -> Result:
        planned = self.planned.get(machine.name)
        cluster = self.cluster(planned.name) if planned else None
        if cluster is None or words[:2] != ["--kubeconfig", ADMIN]:
            return "the connection to the server was refused\n", 1
        match words[2:]:
            case ["get", "nodes", "--output", "name"]:
                return "".join(f"node/{each['metadata']['name']}\n" for each in cluster.all("", "nodes")), 0
            case ["drain", *_, "--", name] if node := cluster.get("", "nodes", name):
                if not machine.trial:
                    cluster.change(node, lambda live: live.setdefault("spec", {}).update(unschedulable=True))
                    for pod in (
                        each
                        for each in cluster.all("", "pods")
                        if each.get("spec", {}).get("nodeName") == name
                    ):
                        cluster.remove(pod)
                return f"node/{name} drained\n", 0
            case ["delete", "node", "--", name] if node := cluster.get("", "nodes", name):
                if not machine.trial:
                    cluster.remove(node)
                return f'node "{name}" deleted\n', 0
        return (
            (
                f"kubectl {' '.join(words[2:])}: the sandbox's machines only get nodes, drain them and "
                "delete them\n"
            ),
            1,
        )


def _reset(machine: Machine, _: dict[str, str]) -> Result:
    for path in (ADMIN, KUBELET, f"{ETC}/pki"):
        machine.remove(path)
    if not list(machine.below(ETC)):
        machine.remove(ETC)
    return "[reset] Deleting contents of directories\n", 0


def _put(machine: Machine, files: Mapping[str, str]) -> None:
    for folder in (ETC, f"{ETC}/pki"):
        machine.files.setdefault(folder, Node(None, 0o755))
    for path, text in files.items():
        machine.files[path] = Node(text.encode(), 0o644 if path == AUTHORITY else 0o600)


def _tokens(cluster: Cluster) -> set[str]:
    """The bootstrap tokens in kube-system that may authenticate."""

    def data(secret: Mapping[str, Any], name: str) -> str:
        return base64.b64decode((secret.get("data") or {}).get(name, "")).decode(errors="replace")

    found = (
        each
        for each in cluster.all("", "secrets", "kube-system")
        if each.get("type") == "bootstrap.kubernetes.io/token"
    )
    return {
        f"{data(each, 'token-id')}.{data(each, 'token-secret')}"
        for each in found
        if data(each, "usage-bootstrap-authentication") == "true"
    }
