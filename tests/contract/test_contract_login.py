"""The login of a supervisor and of guest clusters, which only vSphere with Tanzu has."""

from __future__ import annotations

from contract.calls import Account, applied, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.kubernetes import ClusterClient, Clusters
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.backends.vcenter.namespaces import Namespaces
from bfinfra.backends.vcenter.namespaces import Settings as NamespaceSettings
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Denied, Missing
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources

NO_LOGIN = "vcsim: /wcp/login is not there, and no supervisor behind it"
SUPERVISOR = "10.1.0.1"
TANZU = "run.tanzu.vmware.com/v1alpha1"


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
    with account.refused(Denied):
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
