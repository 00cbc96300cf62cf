"""A supervisor with its namespaces, logins and Tanzu clusters, through plain HTTP and lightkube."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from kube_serving import Served
from lightkube import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import Node, Secret
from lightkube.types import PatchType
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.outside import Outside, Person
from bfinfra.sandbox.kubernetes.supervisor import Access, NamespaceSpec, Supervisor
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

pytestmark = pytest.mark.thorough

TKC = create_namespaced_resource(
    "run.tanzu.vmware.com", "v1alpha1", "TanzuKubernetesCluster", "tanzukubernetesclusters"
)
RELEASES = (
    "v1.19.7+vmware.1-tkg.1.fc82c41",
    "v1.20.2+vmware.1-tkg.2.3e10706",
    "v1.20.7+vmware.1-tkg.1.7fb9067",
    "v1.22.9+vmware.1-tkg.1.cc71bc8",
)
CLASSES = {
    "small": SimpleNamespace(cpus=2, memory=4 * 2**30),
    "large": SimpleNamespace(cpus=4, memory=16 * 2**30),
}
PEOPLE = {
    "administrator@x.test": Person("administrator@x.test", admin=True),
    "dev@x.test": Person("dev@x.test", ("devs@x.test",)),
    "viewer@x.test": Person("viewer@x.test"),
    "nobody@x.test": Person("nobody@x.test"),
}
ACCESS = (Access("devs@x.test", "EDIT", "GROUP"), Access("viewer@x.test", "VIEW"))
SPEC = NamespaceSpec(
    storage={"Gold Policy": None, "silver": 1024}, vm_classes=("small", "large"), access=ACCESS
)


@dataclass
class Logins:
    """A supervisor, what opened it, and its clients."""

    supervisor: Supervisor
    listeners: Listeners
    pki: Pki

    def client(self, address: str, token: str = "") -> httpx2.Client:
        served = Served(
            self.supervisor.cluster, f"https://127.0.0.1:{self.listeners.ports()[address]}", self.pki.ca_file
        )
        return served.http(token)

    def login(self, name: str, password: str = "right", **guest: str) -> httpx2.Response:
        with self.client("10.0.0.1:443") as client:
            return client.post("/wcp/login", json=guest, auth=(name, password))

    def token(self, name: str) -> str:
        return str(self.login(name).json()["session_id"])

    def served(self, token: str, address: str = "10.0.0.1:6443") -> Any:
        return Served(
            self.supervisor.cluster, f"https://127.0.0.1:{self.listeners.ports()[address]}", self.pki.ca_file
        ).lightkube(token)

    def phase(self, name: str = "c1") -> str:
        found = self.cluster(name)
        return str(found.get("status", {}).get("phase", ""))

    def cluster(self, name: str = "c1") -> dict[str, Any]:
        return (
            self.supervisor.cluster.get("run.tanzu.vmware.com", "tanzukubernetesclusters", name, "ns") or {}
        )


def outside(listeners: Listeners, pki: Pki) -> Outside:
    return Outside(
        ca_pem=pki.ca_pem,
        login=lambda name, password: PEOPLE.get(name) if password == "right" else None,
        machine_classes=lambda: CLASSES,
        open=listeners.open,
        close=listeners.close,
    )


@pytest.fixture
def world(listeners: Listeners, pki: Pki, clock: Clock) -> Iterator[Logins]:
    supervisor = Supervisor(
        "10.0.0.1",
        "v1.27.5+vmware.wcp.1",
        clock,
        outside(listeners, pki),
        releases=RELEASES,
        pool=("10.0.0.10", "10.0.0.11"),
        hosts=("esx1.x.test", "ESX2.x.test"),
    )
    supervisor.open()
    supervisor.namespace_ready("ns", SPEC)
    until(lambda: supervisor.cluster.get("", "serviceaccounts", "default", "ns"))
    yield Logins(supervisor, listeners, pki)
    supervisor.close()


def test_a_host_in_capital_letters_has_a_node_that_kubernetes_takes(world: Logins) -> None:
    nodes = {each["metadata"]["name"] for each in world.supervisor.cluster.all("", "nodes")}
    assert {"esx1", "esx2"} <= nodes


def cluster(
    name: str = "c1",
    version: str = "v1.20.2",
    workers: int = 3,
    machine: str = "small",
    storage: str = "silver",
) -> Any:
    nodes = {"class": machine, "storageClass": storage}
    topology = {"controlPlane": {"count": 1, **nodes}, "workers": {"count": workers, **nodes}}
    return TKC(
        metadata={"name": name, "namespace": "ns"},
        spec={"distribution": {"version": version}, "topology": topology},
    )


def test_a_login_gives_a_token_that_carries_its_expiry(world: Logins) -> None:
    answer = world.login("administrator@x.test")
    assert answer.status_code == 200
    body = answer.json()["session_id"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert claims["exp"] - claims["iat"] == 36000
    assert (claims["domain"], bool(claims["aud"])) == ("x.test", True)
    head = answer.json()["session_id"].split(".")[0]
    assert json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"], (
        "a real token names its key"
    )
    with world.client("10.0.0.1:6443", answer.json()["session_id"]) as client:
        assert client.get("/api/v1/namespaces/ns").status_code == 200


def test_a_wrong_password_is_401(world: Logins) -> None:
    assert world.login("dev@x.test", "wrong").status_code == 401


def test_an_expired_token_is_401_and_a_new_login_works(world: Logins) -> None:
    token = world.token("dev@x.test")
    world.supervisor.expire()
    with world.client("10.0.0.1:6443", token) as client:
        answer = client.get("/api/v1/namespaces/ns/pods")
    assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")
    with world.client("10.0.0.1:443", world.token("dev@x.test")) as client:
        assert client.get("/api/v1/namespaces/ns/pods").status_code == 200


def test_workloads_are_the_namespaces_that_the_account_may_see(world: Logins) -> None:
    world.supervisor.namespace_ready("other", NamespaceSpec())
    with world.client("10.0.0.1:443", "") as client:
        seen = {
            name: [each["namespace"] for each in client.get("/wcp/workloads", auth=(name, "right")).json()]
            for name in PEOPLE
        }
    assert seen == {
        "administrator@x.test": ["ns", "other"],
        "dev@x.test": ["ns"],
        "viewer@x.test": ["ns"],
        "nobody@x.test": [],
    }


@pytest.mark.parametrize(
    ("name", "read", "write"),
    [("dev@x.test", 200, 201), ("viewer@x.test", 200, 403), ("nobody@x.test", 403, 403)],
)
def test_the_access_list_of_a_namespace_decides(world: Logins, name: str, read: int, write: int) -> None:
    with world.client("10.0.0.1:6443", world.token(name)) as client:
        assert (
            client.get(
                "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/ns/tanzukubernetesclusters"
            ).status_code
            == read
        )
        assert (
            client.post("/api/v1/namespaces/ns/configmaps", json={"metadata": {"name": "a"}}).status_code
            == write
        )


def test_a_changed_access_list_changes_rights_at_once(world: Logins) -> None:
    world.supervisor.namespace_ready("ns", NamespaceSpec(access=(Access("nobody@x.test", "EDIT"),)))
    with world.client("10.0.0.1:6443", world.token("nobody@x.test")) as client:
        assert client.get("/api/v1/namespaces/ns/secrets").status_code == 200
    with world.client("10.0.0.1:6443", world.token("dev@x.test")) as client:
        assert client.get("/api/v1/namespaces/ns/secrets").status_code == 403


def test_nobody_makes_or_removes_namespaces_here(world: Logins) -> None:
    with world.client("10.0.0.1:6443", world.token("administrator@x.test")) as client:
        assert client.post("/api/v1/namespaces", json={"metadata": {"name": "x"}}).status_code == 403
        assert client.delete("/api/v1/namespaces/ns").status_code == 403


def test_a_namespace_has_its_storage_as_quota_and_its_classes(world: Logins) -> None:
    with world.client("10.0.0.1:6443", world.token("dev@x.test")) as client:
        quota = client.get("/api/v1/namespaces/ns/resourcequotas/ns-storagequota").json()["spec"]["hard"]
        machines = client.get(
            "/apis/vmoperator.vmware.com/v1alpha1/namespaces/ns/virtualmachineclasses"
        ).json()["items"]
        classes = client.get("/apis/storage.k8s.io/v1/storageclasses").json()["items"]
        releases = client.get("/apis/run.tanzu.vmware.com/v1alpha1/tanzukubernetesreleases").json()["items"]
    assert quota == {
        "gold-policy.storageclass.storage.k8s.io/requests.storage": "9223372036854775807",
        "silver.storageclass.storage.k8s.io/requests.storage": "1024Mi",
    }
    assert [each["metadata"]["name"] for each in machines] == ["large", "small"]
    assert [each["metadata"]["name"] for each in classes] == ["gold-policy", "silver"]
    assert [each["spec"]["version"] for each in releases] == [each.lstrip("v") for each in RELEASES]


def test_a_cluster_comes_up_with_its_nodes_and_its_own_api(world: Logins) -> None:
    client = world.served(world.token("dev@x.test"))
    since = world.supervisor.cluster.store.revision
    made = client.create(cluster())
    assert made.spec["distribution"] == {"version": "v1.20.2", "fullVersion": RELEASES[1]}
    phases = [made.status["phase"] if made.status else ""]
    watched = client.watch(TKC, namespace="ns", resource_version=str(since))
    for _, each in watched:
        phases.append((each.status or {}).get("phase", ""))
        if phases[-1] == "running":
            break
    watched.close()
    assert list(dict.fromkeys(phases)) == ["", "creating", "running"]
    status = client.get(TKC, "c1", namespace="ns").status
    assert status["clusterApiStatus"]["apiEndpoints"] == [{"host": "10.0.0.10", "port": 6443}]
    assert len(status["nodeStatus"]) == 4
    assert set(status["nodeStatus"].values()) == set(status["vmStatus"].values()) == {"ready"}
    answer = world.login("dev@x.test", guest_cluster_name="c1", guest_cluster_namespace="ns").json()
    assert answer["guest_cluster_server"] == "10.0.0.10"
    assert base64.b64decode(answer["guest_cluster_ca"]).decode() == world.pki.ca_pem
    guest = world.served(answer["session_id"], "10.0.0.10:6443")
    nodes = list(guest.list(Node))
    assert {each.metadata.name for each in nodes} == set(status["nodeStatus"])
    assert {each.status.nodeInfo.kubeletVersion for each in nodes} == {"v1.20.2+vmware.1"}


def test_a_login_to_a_cluster_that_is_not_there_has_an_empty_server(world: Logins) -> None:
    answer = world.login("dev@x.test", guest_cluster_name="none", guest_cluster_namespace="ns")
    assert (answer.status_code, answer.json()["guest_cluster_server"]) == (200, "")


def test_the_kubeconfig_secret_leads_into_the_cluster(world: Logins) -> None:
    client = world.served(world.token("dev@x.test"))
    client.create(cluster(workers=1))
    until(lambda: world.phase() == "running")
    held = client.get(Secret, "c1-kubeconfig", namespace="ns").data["value"]
    config = json.loads(base64.b64decode(held))
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.10:6443"
    with world.client("10.0.0.10:6443", config["users"][0]["user"]["token"]) as admin:
        names = [
            each["metadata"]["name"]
            for each in admin.get("/apis/storage.k8s.io/v1/storageclasses").json()["items"]
        ]
    assert names == ["gold-policy", "silver"]


def test_scaling_and_upgrading_replace_what_is_needed(world: Logins) -> None:
    client = world.served(world.token("dev@x.test"))
    client.create(cluster(workers=1))
    until(lambda: world.phase() == "running")
    before = set(world.cluster()["status"]["nodeStatus"])
    client.patch(
        TKC,
        "c1",
        {"spec": {"topology": {"workers": {"count": 2}}}},
        namespace="ns",
        patch_type=PatchType.MERGE,
    )
    until(lambda: len(world.cluster()["status"]["nodeStatus"]) == 3 and world.phase() == "running")
    assert before < set(world.cluster()["status"]["nodeStatus"])
    client.patch(
        TKC,
        "c1",
        {"spec": {"distribution": {"version": "v1.20.7"}}},
        namespace="ns",
        patch_type=PatchType.MERGE,
    )
    guest = world.supervisor.guests.running[("ns", "c1")].cluster
    until(
        lambda: (
            guest.version == "v1.20.7+vmware.1"
            and world.phase() == "running"
            and len(guest.all("", "nodes")) == 3
        )
    )
    assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in guest.all("", "nodes")} == {
        "v1.20.7+vmware.1"
    }
    client.patch(
        TKC,
        "c1",
        {"spec": {"topology": {"workers": {"count": 0}}}},
        namespace="ns",
        patch_type=PatchType.MERGE,
    )
    until(lambda: len(world.cluster()["status"]["nodeStatus"]) == 1 and world.phase() == "running")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": "v1.22.9"}, "skips a minor version"),
        ({"version": "v1.19.7"}, "downgrading"),
        ({"version": "v1.99"}, "unable to find Kubernetes distributions"),
    ],
)
def test_versions_that_cannot_follow_are_denied(world: Logins, change: dict[str, str], says: str) -> None:
    client = world.served(world.token("dev@x.test"))
    client.create(cluster(workers=0))
    until(lambda: world.phase() == "running")
    with pytest.raises(ApiError, match=says) as raised:
        client.patch(
            TKC, "c1", {"spec": {"distribution": change}}, namespace="ns", patch_type=PatchType.MERGE
        )
    assert (raised.value.status.code, raised.value.status.reason) == (403, "Forbidden")
    assert "admission webhook" in raised.value.status.message


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"machine": "huge"}, "VirtualMachineClassBindingNotFound"),
        ({"storage": "tin"}, "StorageClassNotFound"),
    ],
)
def test_a_cluster_of_what_the_namespace_lacks_fails_and_says_why(
    world: Logins, wrong: dict[str, str], reason: str
) -> None:
    world.served(world.token("dev@x.test")).create(cluster(**wrong))
    until(lambda: world.phase() == "failed")
    assert reason in {each.get("reason") for each in world.cluster()["status"]["conditions"]}


@pytest.mark.parametrize(("version", "classes", "bindings"), [("v1.27.5", ["small"], 0), ("v1.20.2", [], 1)])
def test_a_namespaces_offers_are_where_the_version_has_them(
    listeners: Listeners, pki: Pki, clock: Clock, version: str, classes: list[str], bindings: int
) -> None:
    """Since vSphere 8.0.2 classes are objects of the namespace; bindings are served, and nothing fills
    them.
    """
    supervisor = Supervisor("10.0.0.2", version, clock, outside(listeners, pki))
    supervisor.open()
    supervisor.namespace_ready("ns", NamespaceSpec(vm_classes=("small",), access=ACCESS))
    found = supervisor.cluster.all("vmoperator.vmware.com", "virtualmachineclasses", "ns")
    assert [each["metadata"]["name"] for each in found] == classes
    assert (
        len(supervisor.cluster.all("vmoperator.vmware.com", "virtualmachineclassbindings", "ns")) == bindings
    )
    supervisor.close()


@pytest.mark.parametrize(("version", "kept"), [("v1.18.2", False), ("v1.20.2", True)])
def test_a_supervisor_of_2021_drops_volumes_and_authorities_in_silence(
    listeners: Listeners, pki: Pki, clock: Clock, version: str, kept: bool
) -> None:
    supervisor = Supervisor("10.0.0.1", version, clock, outside(listeners, pki), releases=RELEASES)
    supervisor.open()
    supervisor.namespace_ready("ns", SPEC)
    definition = supervisor.cluster.get(
        "apiextensions.k8s.io", "customresourcedefinitions", "tanzukubernetesclusters.run.tanzu.vmware.com"
    )
    assert [each["name"] for each in definition["spec"]["versions"]] == [
        "v1alpha1",
        *(["v1alpha2", "v1alpha3"] if kept else []),
    ]
    world, given = Logins(supervisor, listeners, pki), cluster()
    given["spec"]["topology"]["workers"]["volumes"] = [
        {"name": "v", "mountPath": "/v", "capacity": {"storage": "1Gi"}}
    ]
    given["spec"]["settings"] = {
        "network": {"trust": {"additionalTrustedCAs": [{"name": "a", "data": "eA=="}]}}
    }
    world.served(world.token("dev@x.test")).create(given)
    spec = world.cluster()["spec"]
    assert ("volumes" in spec["topology"]["workers"], "trust" in spec["settings"]["network"]) == (kept, kept)
    supervisor.close()


def test_a_failed_cluster_goes_on_once_the_namespace_offers_what_it_needs(world: Logins) -> None:
    world.served(world.token("dev@x.test")).create(cluster(storage="bronze", workers=1))
    until(lambda: world.phase() == "failed")
    world.supervisor.namespace_ready(
        "ns", NamespaceSpec(storage={"bronze": None}, vm_classes=("small",), access=ACCESS)
    )
    until(lambda: world.phase() == "running")


def test_a_deleted_cluster_goes_with_its_address(world: Logins) -> None:
    client = world.served(world.token("dev@x.test"))
    client.create(cluster(workers=0))
    until(lambda: world.phase() == "running")
    client.delete(TKC, "c1", namespace="ns")
    until(lambda: not world.cluster())
    assert "10.0.0.10:6443" not in world.listeners.ports()
    assert world.supervisor.cluster.get("", "secrets", "c1-kubeconfig", "ns") is None or until(
        lambda: world.supervisor.cluster.get("", "secrets", "c1-kubeconfig", "ns") is None
    )


def test_a_removed_namespace_takes_its_clusters_along(world: Logins) -> None:
    world.served(world.token("dev@x.test")).create(cluster(workers=0))
    until(lambda: world.phase() == "running")
    world.supervisor.namespace_removed("ns")
    until(lambda: world.supervisor.cluster.get("", "namespaces", "ns") is None)
    assert not world.supervisor.guests.running


def test_everything_but_tokens_survives_a_restart(world: Logins, pki: Pki, clock: Clock) -> None:
    token = world.token("dev@x.test")
    world.served(token).create(cluster(workers=1))
    until(lambda: world.phase() == "running")
    clock.rest(longest=60)
    saved, dump = json.loads(json.dumps(world.supervisor.save())), world.supervisor.dump()
    world.supervisor.close()
    again = Supervisor(
        "10.0.0.1",
        "v1.27.5+vmware.wcp.1",
        clock,
        outside(world.listeners, pki),
        releases=RELEASES,
        pool=("10.0.0.10",),
    )
    again.open()
    again.restore(saved)
    reborn = Logins(again, world.listeners, pki)
    clock.rest(longest=60)
    assert again.dump() == dump
    with reborn.client("10.0.0.1:6443", token) as client:
        assert client.get("/api/v1/namespaces/ns/pods").status_code == 401
    answer = reborn.login("dev@x.test", guest_cluster_name="c1").json()
    assert (
        len(list(reborn.served(answer["session_id"], f"{answer['guest_cluster_server']}:6443").list(Node)))
        == 2
    )
    again.close()


def test_reset_leaves_a_supervisor_as_new(world: Logins, clock: Clock) -> None:
    clock.rest(longest=60)
    fresh = world.supervisor.dump()
    world.served(world.token("dev@x.test")).create(cluster(workers=0))
    until(lambda: world.phase() == "running")
    world.supervisor.reset()
    assert world.supervisor.namespaces() == []
    assert not world.supervisor.guests.running
    world.supervisor.namespace_ready("ns", SPEC)
    until(lambda: world.supervisor.dump() == fresh)
