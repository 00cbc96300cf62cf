"""The login of a supervisor and of guest clusters, which only vSphere with Tanzu has."""

from __future__ import annotations

from typing import Any

from contract.calls import Account, applied, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.kubernetes import ClusterClient, Clusters
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.backends.vcenter.namespaces import Namespaces
from bfinfra.backends.vcenter.namespaces import Settings as NamespaceSettings
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Denied, Forbidden, Missing
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources

NO_LOGIN = "vcsim: /wcp/login is not there, and no supervisor behind it"
SUPERVISOR = "10.1.0.1"
TANZU = "run.tanzu.vmware.com/v1alpha1"
ADDONS = "addons.kubernetes.vmware.com/v1alpha1"
CLUSTERS, PUBLIC = "cluster.x-k8s.io/v1beta2", "vmware-system-vks-public"


def enter(
    side: VCenterSide, user: str = "administrator@vsphere.local", password: str = "", **where: str
) -> tuple[ClusterClient, Clusters]:
    secret = Secret("env", "P", Sources(env={"P": password or side.passwords.get(user, "")}))
    settings = VCenterSettings(server=side.server, username=user, password=secret, trust=side.trust)
    roots = side.open().authorities()
    made = Clusters(side.transport(), settings, lambda: roots)
    side.closing.append(made.close)
    return made.at(Endpoint(server=SUPERVISOR, **where)), made


@call("clusters.at", "cluster.access", case="the supervisor")
@lacks(NO_LOGIN)
def test_the_supervisor_lets_the_administrator_in(vcenter: VCenterSide) -> None:
    cluster, _ = enter(vcenter)
    assert {o["metadata"]["name"] for o in cluster.list("v1", "Namespace")} >= {"default", "kube-system"}


@call("cluster.access", case="the token ended: a new login")
@lacks(NO_LOGIN)
def test_an_ended_token_is_renewed(vcenter: VCenterSide) -> None:
    cluster, _ = enter(vcenter)
    cluster.version()
    assert vcenter.world
    vcenter.world.expire()
    assert cluster.list("v1", "Namespace")


@call("cluster.access", case="a wrong password")
@lacks(NO_LOGIN)
def test_a_wrong_password_is_denied_by_the_supervisor(vcenter: VCenterSide, account: Account) -> None:
    cluster, _ = enter(vcenter, password="wrong")
    with account.refused(Denied):
        cluster.version()


@call("cluster.access", case="a guest cluster that isn't there")
@lacks(NO_LOGIN)
def test_a_guest_that_is_not_there_is_missing(vcenter: VCenterSide, account: Account) -> None:
    cluster, _ = enter(vcenter, namespace="nothing", guest="nothing")
    with account.refused(Missing, Denied):
        cluster.version()


@call("cluster.list", case="on the supervisor, without a right")
@lacks(NO_LOGIN)
def test_a_reader_sees_no_secrets_of_the_supervisor(vcenter: VCenterSide, account: Account) -> None:
    cluster, _ = enter(vcenter, "reader@vsphere.local")
    with account.refused(Forbidden):
        cluster.list("v1", "Secret", "kube-system")


@call("clusters.kubeconfig", case="of the supervisor")
@lacks(NO_LOGIN)
def test_a_kubeconfig_is_written(vcenter: VCenterSide) -> None:
    _, clusters = enter(vcenter)
    config = clusters.kubeconfig(Endpoint(server=SUPERVISOR))
    assert (
        "server: https://127.0.0.1:" in config
    )  # where the sandbox listens: kubectl does not know it by the name
    assert f"tls-server-name: {SUPERVISOR}" in config


@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.patch",
    "cluster.apply",
    "cluster.delete",
    "cluster.unmanaged",
    case="the life of a Tanzu cluster in a namespace of the supervisor",
)
@lacks(NO_LOGIN)
def test_the_life_of_a_tanzu_cluster(vcenter: VCenterSide) -> None:
    spaces = Namespaces(vcenter.open())
    spaces.create(
        "life",
        vcenter.supervisor,
        NamespaceSettings(storage={"gold": None}, vm_classes=("best-effort-small",)),
    )
    vcenter.until(lambda: spaces.details(["life"], spaces.catalog())["life"].status == "RUNNING")
    cluster, _ = enter(vcenter, namespace="life")
    assert {
        r["spec"]["version"].partition("+")[0] for r in cluster.list(TANZU, "TanzuKubernetesRelease")
    } >= {"1.20.2"}
    assert [
        b["metadata"]["name"]
        for b in cluster.list("vmoperator.vmware.com/v1alpha1", "VirtualMachineClass", "life")
    ] == ["best-effort-small"]
    assert cluster.list("vmoperator.vmware.com/v1alpha1", "VirtualMachineClassBinding", "life") == []
    assert cluster.list("v1", "ResourceQuota", "life")
    pool = {"count": 1, "class": "best-effort-small", "storageClass": "gold"}
    thing = {
        "apiVersion": TANZU,
        "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "guest", "namespace": "life"},
        "spec": {"distribution": {"version": "v1.20.2"}, "topology": {"controlPlane": pool, "workers": pool}},
    }
    cluster.create(marked(thing, Mark("mine", "tanzu_cluster/guest")))
    vcenter.until(
        lambda: (
            (cluster.get(TANZU, "TanzuKubernetesCluster", "guest", "life") or {})
            .get("status", {})
            .get("phase")
            == "running"
        )
    )
    assert cluster.list("cluster.x-k8s.io/v1beta1", "Cluster", "life") == []
    assert cluster.unmanaged("mine", "life") == ()
    assert cluster.unmanaged("theirs", "life") == ("TanzuKubernetesCluster life/guest",)
    cluster.patch(
        TANZU, "TanzuKubernetesCluster", "guest", {"spec": {"topology": {"workers": {"count": 2}}}}, "life"
    )
    vcenter.until(
        lambda: applied(cluster, {**thing, "metadata": {**thing["metadata"], "labels": {"team": "a"}}})
    )
    cluster.delete(TANZU, "TanzuKubernetesCluster", "guest", "life", propagation="Foreground")
    vcenter.until(lambda: cluster.get(TANZU, "TanzuKubernetesCluster", "guest", "life") is None)
    spaces.delete("life")


@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.apply",
    "cluster.delete",
    "cluster.unmanaged",
    case="the life of a cluster of the vSphere Kubernetes Service in a namespace of the supervisor",
)
@lacks(NO_LOGIN)
def test_the_life_of_a_vks_cluster(vcenter: VCenterSide) -> None:
    spaces = Namespaces(vcenter.open())
    spaces.create(
        "vks",
        vcenter.supervisor,
        NamespaceSettings(storage={"gold": None}, vm_classes=("best-effort-small",)),
    )
    vcenter.until(lambda: spaces.details(["vks"], spaces.catalog())["vks"].status == "RUNNING")
    cluster, _ = enter(vcenter, namespace="vks")
    classes = cluster.list(CLUSTERS, "ClusterClass", PUBLIC)
    assert [each["metadata"]["name"] for each in classes] == ["builtin-generic-v3.6.0"]
    assert {"vmClass", "storageClass"} <= {each["name"] for each in classes[0]["status"]["variables"]}
    releases = cluster.list("kubernetes.vmware.com/v1alpha1", "KubernetesRelease")
    assert "v1.34.2+vmware.2-vkr.2" in [each["spec"]["version"] for each in releases]
    images = cluster.list("run.tanzu.vmware.com/v1alpha3", "OSImage")
    assert {each["metadata"]["labels"]["os-name"] for each in images} == {"photon", "ubuntu"}
    values = {"vmClass": "best-effort-small", "storageClass": "gold"}
    topology = {
        "classRef": {"name": "builtin-generic-v3.6.0", "namespace": PUBLIC},
        "version": "v1.34",
        "controlPlane": {"replicas": 1},
        "variables": [{"name": name, "value": value} for name, value in values.items()],
    }
    thing = {
        "apiVersion": CLUSTERS,
        "kind": "Cluster",
        "metadata": {"name": "guest", "namespace": "vks"},
        "spec": {"topology": topology},
    }
    cluster.create(marked(thing, Mark("mine", "vks_cluster/guest")))
    vcenter.until(lambda: has_condition(cluster.get(CLUSTERS, "Cluster", "guest", "vks"), "Available"))
    (older,) = cluster.list("cluster.x-k8s.io/v1beta1", "Cluster", "vks")
    assert older["spec"]["topology"]["class"] == "builtin-generic-v3.6.0"
    assert older["spec"]["topology"]["version"] == "v1.34.2+vmware.2"
    assert cluster.unmanaged("theirs", "vks") == ("Cluster vks/guest",)
    pools = {"machineDeployments": [{"class": "node-pool", "name": "cpu", "replicas": 1}]}
    more = {**thing, "spec": {"topology": {**topology, "version": "v1.34.2+vmware.2", "workers": pools}}}
    vcenter.until(lambda: applied(cluster, marked(more, Mark("mine", "vks_cluster/guest"))))
    vcenter.until(lambda: _pools(cluster) == ["cpu"])
    _life_of_an_add_on(cluster, vcenter)
    cluster.delete(CLUSTERS, "Cluster", "guest", "vks")
    vcenter.until(lambda: cluster.get(CLUSTERS, "Cluster", "guest", "vks") is None)
    spaces.delete("vks")


def _pools(cluster: ClusterClient) -> list[str]:
    found = cluster.list(CLUSTERS, "MachineDeployment", "vks", "cluster.x-k8s.io/cluster-name=guest")
    return [each["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"] for each in found]


def _life_of_an_add_on(cluster: ClusterClient, vcenter: VCenterSide) -> None:
    selected = {"matchLabels": {"cluster.x-k8s.io/cluster-name": "guest"}}
    install = {
        "apiVersion": ADDONS,
        "kind": "AddonInstall",
        "metadata": {"name": "certificates", "namespace": "vks"},
        "spec": {"addonRef": {"name": "cert-manager"}, "clusters": [{"selector": selected}]},
    }
    config = {
        "apiVersion": ADDONS,
        "kind": "AddonConfig",
        "metadata": {"name": "guest-cert-manager", "namespace": "vks"},
        "spec": {"values": {"replicas": 2}},
    }
    mark = Mark("mine", "vks_addon/certificates")
    cluster.create(marked(install, mark))
    cluster.apply(marked(config, mark), force=True)
    vcenter.until(
        lambda: any(has_condition(each, "Ready") for each in cluster.list(ADDONS, "ClusterAddon", "vks"))
    )
    (found,) = cluster.list(ADDONS, "AddonConfig", "vks")
    assert found["spec"]["clusterName"] == "guest"
    more = {**install, "spec": {**install["spec"], "stopMatchingBehavior": "Retain"}}
    vcenter.until(lambda: applied(cluster, marked(more, mark)))
    assert len(cluster.list(ADDONS, "AddonInstall", "vks", "bfinfra.io/site=mine")) == 1
    cluster.delete(ADDONS, "AddonConfig", "guest-cert-manager", "vks")
    cluster.delete(ADDONS, "AddonInstall", "certificates", "vks")
    assert cluster.list(ADDONS, "AddonInstall", "vks") == []


def has_condition(cluster: dict[str, Any] | None, condition: str) -> bool:
    conditions = ((cluster or {}).get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == (condition, "True") for each in conditions)
