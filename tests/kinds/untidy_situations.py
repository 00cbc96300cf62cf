"""What a user meets in an untidy vCenter: each situation with its site, its command, and how that ends. What the
commands print is on docs/reference/untidy.md; `python -m kinds.untidy_situations` writes that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kinds.untidy import find, machines, pools, switch
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter.leases import PREFIX
from bfinfra.sandbox import Running

Given = dict[str, Any]
SETTINGS = {
    "server": "vc.small.test",
    "username": "admin@small.test",
    "password": {"env": "VCENTER_PASSWORD"},
    "trust": {"ca_file": "ca.pem"},
    "datacenter": "/dc",
}


@dataclass(frozen=True)
class Scene:
    """A sandbox, and what writes a site (its resources, further settings) or runs a command beside it: how that ends, and
    what it prints.
    """

    sandbox: Running
    writes: Callable[..., None]
    types: Callable[[str], tuple[int, str]]

    def applied(self, given: Given) -> None:
        """A site with these resources, by this user."""
        self.writes(given)
        code, printed = self.types("apply site.yaml --yes --allow-disruption all")
        assert code == 0, printed

    def somebody(self, does: Callable[[Any], None]) -> None:
        """Somebody else, an administrator, does this with pyVmomi."""
        with administrator(self.sandbox) as si:
            does(si)


@dataclass(frozen=True)
class Situation:
    """`about`: the heading on the page; `given`: the site's resources; `before`: what is done before the command, and by
    whom; `code`: how the command ends.
    """

    about: str
    given: Given
    before: Callable[[Scene], None] = lambda _: None
    command: str = "plan site.yaml"
    code: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


def machine(name: str = "db", **fields: Any) -> Given:
    """A site's VM, whose places are written by their paths."""
    places = {"template": "/dc/vm/centos-7.6", "cluster": "/dc/host/farm", "datastore": "/dc/datastore/local"}
    own = {
        **places,
        "cpus": 1,
        "memory": "64MiB",
        "power": "off",
        "adapters": adapters("/dc/network/VM Network"),
    }
    return {
        "virtual_machine": {name: {at: each for at, each in {**own, **fields}.items() if each is not None}}
    }


def adapters(network: str) -> list[dict[str, str]]:
    return [{"network": network}]


def server(**fields: Any) -> Given:
    """A Bitfusion server, on a host that is the site's, too."""
    own = {
        "ova": {"file": "server.ova"},
        "host": "esx1.small.test",
        "gpus": 1,
        "networks": {"Network 1": {"network": "/dc/network/VM Network", "address": "10.0.0.9/24"}},
        "properties": {
            "hostname": "bf-01",
            "customer_password": {"env": "VCENTER_PASSWORD"},
            "vcenter_username": "admin@small.test",
            "vcenter_password": {"env": "VCENTER_PASSWORD"},
        },
    }
    return {**gpus(), "bitfusion_server": {"bf-01": {**own, **fields}}}


def gpus(**fields: Any) -> Given:
    card = {"vendor": "0x10de", "device": "0x1eb8"}
    return {"gpu_host": {"esx1.small.test": {"passthrough": [card], "reboot": "if_needed", **fields}}}


def pool(name: str = "gpu", **fields: Any) -> Given:
    return {"resource_pool": {name: {"cluster": "/dc/host/farm", **fields}}}


def teams(scene: Scene) -> None:
    """Two teams have a VM called db, and a template called centos-7.6."""

    def make(si: Any) -> None:
        for team in ("teamA", "teamB"):
            folder = find(si, "/dc/vm").CreateFolder(team)
            machines(folder, ("db", "centos-7.6"), find(si, "/dc/host/farm/Resources"), "local")
            find(si, f"/dc/vm/{team}/centos-7.6").MarkAsTemplate()

    scene.somebody(make)


def two_pools(scene: Scene) -> None:
    scene.somebody(lambda si: [pools(si, "/dc/host/farm", names) for names in (("a", "gpu"), ("b", "gpu"))])


def two_switches(scene: Scene) -> None:
    """Of one name, with port groups of one name, in folders of two teams."""

    def make(si: Any) -> None:
        for team in ("teamA", "teamB"):
            find(si, "/dc/network").CreateFolder(team)
            switch(si, f"/dc/network/{team}", "roce", ("vlan-20",))

    scene.somebody(make)


def two_stores(scene: Scene) -> None:
    """A datastore is moved into a folder, and another one gets its name."""

    def make(si: Any) -> None:
        folder = find(si, "/dc/datastore").CreateFolder("old")
        WaitForTask(folder.MoveIntoFolder_Task([find(si, "/dc/datastore/local")]))
        WaitForTask(find(si, "/dc/datastore/theirs").Rename_Task("local"))

    scene.somebody(make)


def by_others(given: Given) -> Callable[[Scene], None]:
    """Another site has made these."""

    def make(scene: Scene) -> None:
        scene.writes(given, site="theirs")
        code, printed = scene.types("apply site.yaml --yes --allow-disruption all")
        assert code == 0, printed

    return make


def ours(given: Given, then: Callable[[Scene], None] = lambda _: None) -> Callable[[Scene], None]:
    """The site was applied, and then this happened."""

    def make(scene: Scene) -> None:
        scene.applied(given)
        then(scene)

    return make


def host(method: str, *args: Any) -> Callable[[Scene], None]:
    """Somebody does this with the GPU host."""
    return lambda scene: scene.somebody(
        lambda si: WaitForTask(getattr(find(si, "/dc/host/farm/esx1.small.test"), method)(*args))
    )


def hidden(scene: Scene) -> None:
    """The account that applied it loses the right to see it."""

    def hide(si: Any) -> None:
        permission = vim.AuthorizationManager.Permission(
            principal="admin@small.test", group=False, roleId=-5, propagate=True
        )
        si.content.authorizationManager.SetEntityPermissions(find(si, "/dc/vm/db"), [permission])

    scene.somebody(hide)


def inaccessible(scene: Scene) -> None:
    scene.sandbox.change({"inaccessible": "db"})


def leased(scene: Scene) -> None:
    """Another machine's run holds the lease of the cluster."""

    def hold(si: Any) -> None:
        cluster = find(si, "/dc/host/farm")._moId
        key = si.content.customFieldsManager.AddCustomFieldDef(PREFIX + cluster, None, None, None).key
        value = "by=far/1a2b/4711 since=2026-01-01T00:00:00Z n=1"
        si.content.customFieldsManager.SetField(si.content.rootFolder, key, value)

    scene.somebody(hold)


def copied(scene: Scene) -> None:
    """Somebody clones the VM, with its mark, and deletes it."""

    def clone(si: Any) -> None:
        vm = find(si, "/dc/vm/db")
        where = vim.vm.RelocateSpec(pool=vm.resourcePool)
        WaitForTask(vm.CloneVM_Task(vm.parent, "copy-of-db", vim.vm.CloneSpec(location=where)))
        WaitForTask(vm.Destroy_Task())

    scene.somebody(clone)


def planned(scene: Scene) -> None:
    """A plan is saved, and somebody changes what it is about."""
    scene.writes(machine(cpus=2))
    code, printed = scene.types("plan site.yaml --out saved.plan")
    assert code == 0, printed
    spec = vim.vm.ConfigSpec(memoryMB=128)
    scene.somebody(lambda si: WaitForTask(find(si, "/dc/vm/db").ReconfigVM_Task(spec)))


KUBERNETES = "10.3.0.1:6443"


def terminating(scene: Scene) -> None:
    """Somebody deletes the namespace, and a finalizer holds it."""
    where, path = {"address": KUBERNETES}, "/api/v1/namespaces"
    namespace = {"metadata": {"name": "training", "finalizers": ["example.com/held"]}}
    scene.sandbox.change({**where, "method": "POST", "path": path, "body": namespace})
    scene.sandbox.change({**where, "method": "DELETE", "path": f"{path}/training"})


NAMESPACE = {
    "kubernetes_cluster": {"other": {"kubeconfig": {"file": "other.kubeconfig"}}},
    "namespace": {"training": {"cluster": "other"}},
}
SITUATIONS = (
    Situation("Two teams have a VM of the name, and the site's is neither", machine(), teams, code=0),
    Situation("A VM of the name is in the folder, and it is another team's", machine(folder="teamB"), teams),
    Situation(
        "An adoption by a name that two teams use",
        machine(),
        teams,
        "adopt site.yaml virtual_machine/db --yes",
    ),
    Situation("Two templates have the name", machine(template="centos-7.6"), teams),
    Situation("Two clusters have the name", machine(cluster="farm")),
    Situation("Two datastores have the name", machine(datastore="local"), two_stores),
    Situation("Two port groups have the name", machine(adapters=adapters("vlan-20")), two_switches),
    Situation("Two resource pools have the name", server(resource_pool="gpu"), two_pools),
    Situation("Two switches have the name", {"port_group": {"fast": {"switch": "roce"}}}, two_switches),
    Situation("A path leads nowhere", machine(template="/dc/vm/teamC/centos-7.6"), teams),
    Situation("A path leads into another datacenter", machine(template="/abroad/elsewhere/vm/centos-7.6")),
    Situation("The folder is missing", machine(folder="teamC"), teams),
    Situation("The datacenter is misspelt", machine(), settings={"datacenter": "dc0"}),
    Situation("The switch is gone", {"port_group": {"fast": {"switch": "roce"}}}),
    Situation("A name of 81 characters", machine("n" * 81)),
    Situation("A name with a line break", machine("line\nbreak")),
    Situation("The object is another site's", pool(), by_others(pool())),
    Situation(
        "Somebody made the object by hand",
        pool(),
        lambda s: s.somebody(lambda si: pools(si, "/dc/host/farm", ("gpu",))),
    ),
    Situation("The host is disconnected", gpus(), host("DisconnectHost_Task")),
    Situation(
        "The host is disconnected, and its settings were applied",
        gpus(),
        ours(gpus(), host("DisconnectHost_Task")),
        "drift site.yaml",
    ),
    Situation("The host is in maintenance mode", server(), host("EnterMaintenanceMode_Task", 60)),
    Situation("Another run restarts hosts of the cluster", gpus(), leased, code=0),
    Situation(
        "The account can't see the VM any more", machine(), ours(machine(), hidden), "destroy site.yaml --yes"
    ),
    Situation("vCenter can't read the VM's files", machine(), ours(machine(), inaccessible)),
    Situation("A copy has the VM's mark, and the VM is gone", machine(), ours(machine(), copied)),
    Situation("The namespace is being deleted", NAMESPACE, terminating),
    Situation(
        "The library doesn't have the item", machine(template=None, library={"name": "tkr", "item": "ubuntu"})
    ),
    Situation(
        "The object changed after the plan was saved",
        machine(cpus=2),
        ours(machine(), planned),
        "apply saved.plan --yes",
    ),
)
