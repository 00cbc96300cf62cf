"""A life that needs every right that a kind asks for: made, changed in every way, driven apart by others,
mended, deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import kinds.lifecycle as life
import yaml
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import FROM_LIBRARY, NO_HOSTS, OWN_GROUP, POC, Site, administrator, other, paths
from sandbox.asking import Https, Rest, read

from bfinfra.kinds import kind, names
from bfinfra.kinds.cluster.mpi_operator.definition import definition
from bfinfra.model import process
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.model.rights import Privileges, Rights, Use
from bfinfra.sandbox import Running
from bfinfra.sandbox.factories.descriptor import Appliance, descriptor


class Refused(Exception):
    """bfinfra ended with a problem; its words."""


def planned(site: Site, sandbox: Running, *, destroy: bool = False) -> None:
    """A plan that sees everything. Refused."""
    try:
        found = life.plan(site.path(), sandbox, destroy=destroy)
    except BfinfraError as error:
        raise Refused(str(error)) from None
    if found.problems or found.unreadable:
        raise Refused("; ".join([*map(str, found.problems), *found.unreadable.values()]))


def applied(site: Site, sandbox: Running, **how: Any) -> None:
    """An apply that ends well. Refused."""
    try:
        found = life.apply(site.path(), sandbox, **how)
    except BfinfraError as error:
        raise Refused(str(error)) from None
    if not life.made(found):
        raise Refused("; ".join(life.endings(found).values()))


def needed(site: Site, sandbox: Running, use: Use) -> Rights:
    """What is printed for the site before and after its changes: who moves a server needs its old
    place, too.
    """
    first = site.rights(sandbox, use)
    if use is not Use.APPLY or site.kind not in CHANGED:
        return first
    then = site.but(*CHANGED[site.kind]).rights(sandbox, use)
    entities = {
        each: tuple({*first.entities.get(each, ()), *then.entities.get(each, ())})
        for each in {**first.entities, **then.entities}
    }
    return replace(first, entities=entities, apis={**first.apis, **then.apis})


def lived(site: Site, sandbox: Running, use: Use, given: Callable[[], None], *, whole: bool = True) -> None:
    """All that a use is for; unless it is the `whole` of it, nothing is changed after it was made. `given`:
    gives the account its rights, once what others do first is done. Refused.
    """
    if "\nkubernetes_cluster:" in site.text and "\nmpi_operator:" not in site.text:
        other(sandbox).call(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("v2beta1")
        )  # a survey lists what the cluster serves
    if site.kind == FROM_LIBRARY:
        stocked(sandbox)
    if use is Use.DESTROY or (use is Use.PLAN and site.kind in HOMES):
        applied_by_the_administrator(site, sandbox)
        if use is Use.PLAN and site.kind == "mpi_job":
            other(sandbox).call(
                "DELETE", f"{JOBS}/tensorflow-benchmarks"
            )  # what can't be found by its label is asked for by its name
    else:
        prepare(site.kind, use, sandbox)
    given()
    if use is Use.PLAN:
        planned(site, sandbox)
    elif use is Use.DESTROY:
        elsewhere = noted_elsewhere(sandbox, "of another site") if site.kind != POC else []
        applied(site, sandbox, destroy=True)
        if elsewhere:  # once more where its notes are the last ones
            noted_elsewhere(sandbox, "")
            applied_by_the_administrator(site, sandbox)
            applied(site, sandbox, destroy=True)
    else:
        applied(site, sandbox, adopt=ADOPTED.get(site.kind, frozenset()))
        if not whole:
            return
        changed = site.but(*CHANGED.get(site.kind, ()))
        applied(changed, sandbox)
        for drift in DRIFTS.get(site.kind, ()):
            drift(sandbox)
            applied(changed, sandbox)


JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"


def applied_by_the_administrator(site: Site, sandbox: Running) -> None:
    found = life.apply(
        Site.of(site.kind, site.folder / "first")
        .by(sandbox.clients["GOVC_USERNAME"], "other.kubeconfig")
        .path(),
        sandbox,
    )
    assert life.made(found), life.endings(found)


HOMES = (
    "supervisor_namespace",
    "tanzu_cluster",
    "vks_cluster",
    "mpi_operator",
    "mpi_job",
    "bitfusion_device_plugin",
    POC,
)
"""Looking at these takes rights in what stands."""


def taken(site: Site, sandbox: Running, use: Use) -> set[str]:
    """What the steps of a life without changes take, and looking: a privilege's id, or `verb resource`."""
    destroy, found = use is Use.DESTROY, set[str]()
    if destroy:
        applied_by_the_administrator(site, sandbox)
    steps = [
        step
        for item in life.plan(
            site.by(sandbox.clients["GOVC_USERNAME"], "other.kubeconfig").path(), sandbox, destroy=destroy
        ).pending
        for step in item.steps
    ]
    sandbox.reset()
    for right in [r for step in steps if use is not Use.PLAN for r in step.rights] + [
        r for name in names() for r in (*kind(name).survey_privileges, *kind(name).resource_privileges)
    ]:
        found |= (
            {*right.names}
            if isinstance(right, Privileges)
            else {f"{verb} {resource}" for verb in right.verbs for resource in right.resources}
        )
    return found


ADOPTED = {"workload": frozenset({Key("workload", "hello")})}
CHANGED: dict[str, tuple[tuple[str, str], ...]] = {
    "bitfusion_server": (
        ("gpus: 1", "gpus: 1\n    cpus: 6\n    memory: 40GiB\n    disk: 60GiB\n    resource_pool: servers"),
        ("{network: VM Network, address", "{network: Storage Network, address"),
        ("10.2.0.1}", "10.2.0.1}\n      Network 2: {network: VM Network}"),
        ("bf-01.small.test", "bf-02.small.test"),
    ),
    "supervisor_namespace": (("memory: 64GiB", "memory: 32GiB"),),
    "tanzu_cluster": (("workers: {count: 1", "workers: {count: 2"),),
    "vks_cluster": (("cpu: {count: 1", "cpu: {count: 2"),),
    "namespace": (("team: a", "team: b"),),
    "mpi_operator": (
        ("namespace: default", "namespace: default, image: registry.small.test/mpi-operator:0.8.0"),
    ),
    "nvidia_device_plugin": (("control_plane: true", "control_plane: false"),),
    "bitfusion_device_plugin": (("{enforce: privileged}", "{enforce: privileged}, labels: {team: a}"),),
    "mpi_job": (
        ("workers: 2", "workers: 2\n    wait: running"),
        ("namespace: default", "namespace: default, image: registry.small.test/mpi-operator:0.8.0"),
    ),
    "content_library": (("subscription: {}", "subscription: {on_demand: false}"),),
    "distributed_switch": (("mtu: 9000", "mtu: 1500"),),
    NO_HOSTS: (("mtu: 9000", "mtu: 1500"),),
    OWN_GROUP: (
        ("{hosts:", "{mtu: 9000, hosts:"),
        ("vlan: 31", "vlan: 32"),
        ("gpus: 1", "gpus: 1\n    cpus: 6\n    memory: 40GiB\n    disk: 60GiB\n    resource_pool: servers"),
        ("10.2.0.1}", "10.2.0.1}\n      Network 2: {network: VM Network}"),
        ("{network: management, address", "{network: Storage Network, address"),
        ("bf-01.small.test", "bf-02.small.test"),
    ),
    FROM_LIBRARY: (
        ("cpus: 4", "cpus: 6"),
        ("memory: 24GiB", "memory: 32GiB\n    reserve: true"),
        ("[{network: VM Network}]", "[{network: Storage Network}]"),
        ("size: 40GiB", "size: 60GiB"),
        ("    disks: {scsi0:1: {size: 1GiB}}\n", ""),
        ("hostname: sckubw01", "hostname: other"),
    ),
    "port_group": (("{hosts:", "{mtu: 9000, hosts:"), ("vlan: 31", "vlan: 32")),
    "vmkernel_adapter": (("{hosts:", "{mtu: 9000, hosts:"), ("{switch: roce}", "{switch: roce, vlan: 31}")),
    "supervisor": (("{hosts:", "{mtu: 9000, hosts:"), ("{switch: pods}", "{switch: pods, vlan: 31}")),
    "virtual_machine": (
        ("cpus: 4", "cpus: 6\n    disk: 200GiB"),
        ("memory: 24GiB", "memory: 32GiB\n    reserve: true"),
        (
            "[{network: VM Network}]\n    disks: {scsi0:1: {size: 40GiB}}",
            "[{network: Storage Network}]\n    disks: {scsi1:0: {size: 60GiB}}",
        ),
    ),
    "bitfusion_vm": (
        (
            "cpus: 4, memory: 16GiB, adapters: [{network: VM Network}]",
            "cpus: 6, disk: 200GiB, memory: 32GiB, reserve: true, adapters: [{network: Storage Network}]",
        ),
    ),
    "storage_policy": (
        (
            "tags: {tier: [fast]}",
            "tags: {tier: [fast]}\n    tag: {category: bfinfra, name: bf-k8s, datastores: [shared]}",
        ),
    ),
    "workload": ((str(life.SPECS / "manifests/hello.yaml"), str(Path(__file__).parent / "again.yaml")),),
}


MACHINES = {"virtual_machine": "sckubw01", "bitfusion_vm": "desk"}
"""Kinds whose examples clone a machine, and what it is called."""


def prepare(kind: str, use: Use, sandbox: Running) -> None:
    """What must be there for what comes."""
    if kind in ("bitfusion_server", OWN_GROUP):
        with administrator(sandbox) as si:
            there = paths(si)
            there["/dc/vm"].CreateFolder("gpu")
            part = vim.ResourceAllocationInfo(
                reservation=0,
                limit=-1,
                expandableReservation=True,
                shares=vim.SharesInfo(level="normal", shares=4000),
            )
            there["/dc/host/farm/Resources"].CreateResourcePool(
                "servers", vim.ResourceConfigSpec(cpuAllocation=part, memoryAllocation=part)
            )
    elif kind in MACHINES:
        disk = vim.vm.device.VirtualDisk(
            key=-1,
            controllerKey=1000,
            unitNumber=0,
            capacityInKB=16 << 20,
            backing=vim.vm.device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent"),
        )
        scsi = vim.vm.device.ParaVirtualSCSIController(key=1000, busNumber=0, sharedBus="noSharing")
        added = [
            vim.vm.device.VirtualDeviceSpec(operation="add", device=scsi),
            vim.vm.device.VirtualDeviceSpec(operation="add", fileOperation="create", device=disk),
        ]
        with administrator(sandbox) as si:
            WaitForTask(paths(si)["/dc/vm/centos-7.6"].Reconfigure(vim.vm.ConfigSpec(deviceChange=added)))
    elif kind == "workload" and use is Use.APPLY:
        other(sandbox).call(
            "POST",
            "/apis/batch/v1/namespaces/default/jobs",
            yaml.safe_load((life.SPECS / "manifests/hello.yaml").read_text()),
        )


def stocked(sandbox: Running) -> None:
    """A library with an OVF and a VM template, by plain HTTP."""
    rest, items = Rest(sandbox), "/api/content/library/item"

    def ask(path: str, body: Any = None) -> Any:
        answer = rest.call("POST", path, body)
        assert answer.status < 300, answer
        return answer.data

    store = rest.get("/api/vcenter/datastore?names=local")[0]["datastore"]
    library = ask(
        "/api/content/local-library",
        {
            "name": "images",
            "type": "LOCAL",
            "storage_backings": [{"type": "DATASTORE", "datastore_id": store}],
        },
    )
    item = ask(items, {"library_id": library, "name": "appliance", "type": "ovf"})
    session, text = (
        ask(f"{items}/update-session", {"library_item_id": item}),
        descriptor(Appliance("appliance", "Server", "1-1", (), ("Network 1",))).encode(),
    )
    where = ask(
        f"{items}/update-session/{session}/file",
        {"name": "appliance.ovf", "source_type": "PUSH", "size": len(text)},
    )["upload_endpoint"]["uri"]
    line = Https(rest.host, rest.port, rest.ca_file)
    line.request(
        "PUT", "/" + where.partition("://")[2].partition("/")[2], text, {"vmware-api-session-id": rest.token}
    )
    assert read(line).status < 300
    line.close()
    ask(f"{items}/update-session/{session}?action=complete")
    with administrator(sandbox) as si:
        source = paths(si)["/dc/vm/centos-7.6"]._moId
    ask(
        "/api/vcenter/vm-template/library-items",
        {
            "source_vm": source,
            "name": "centos",
            "library": library,
            "placement": {"cluster": rest.get("/api/vcenter/cluster?names=farm")[0]["cluster"]},
        },
    )


def noted_elsewhere(sandbox: Running, text: str) -> list[str]:
    """Somebody uses the same custom attributes on other objects; which."""
    found = []
    with administrator(sandbox) as si:
        manager, there = si.content.customFieldsManager, paths(si).values()
        for each in [field for field in manager.field if field.name.startswith("bfinfra.")]:
            others = [
                ref
                for ref in there
                if type(ref) is each.managedObjectType
                and not any(v.key == each.key and v.value.startswith("bfinfra:") for v in ref.customValue)
            ]
            for ref in others:
                manager.SetField(ref, each.key, text)
            found += [each.name] if others else []
    return found


def turned(sandbox: Running) -> None:
    """Somebody deletes the machine, and makes its template a machine."""
    with administrator(sandbox) as si:
        there = paths(si)
        made = next(there[path] for name in MACHINES.values() if (path := f"/dc/vm/{name}") in there)
        WaitForTask(made.PowerOff())
        WaitForTask(made.Destroy())
        there["/dc/vm/centos-7.6"].MarkAsVirtualMachine(there["/dc/host/farm/Resources"])


def hardware(sandbox: Running) -> None:
    """Somebody takes back what passthrough needs."""
    with administrator(sandbox) as si:
        vm = paths(si)["/dc/vm/bf-01"]
        WaitForTask(vm.PowerOff())
        WaitForTask(vm.Reconfigure(vim.vm.ConfigSpec(firmware="bios", memoryReservationLockedToMax=False)))


def strayed(sandbox: Running) -> None:
    """Somebody moves it to another folder."""
    with administrator(sandbox) as si:
        there = paths(si)
        WaitForTask(there["/dc/vm/gpu"].MoveInto([there["/dc/vm/bf-01"]]))


GONE = 1 << 23  # beyond every process's number


def half_imported(sandbox: Running) -> None:
    """As if the import had never been finished, by a process that is gone."""
    with administrator(sandbox) as si:
        there = paths(si)
        option = vim.option.OptionValue(
            key="bfinfra.importing", value=f"{process.me().rpartition('/')[0]}/{GONE}"
        )
        WaitForTask(
            there.get("/dc/vm/bf-01", there.get("/dc/vm/sckubw01")).Reconfigure(
                vim.vm.ConfigSpec(extraConfig=[option])
            )
        )


def overwritten(sandbox: Running) -> None:
    """Somebody writes something else into the Secrets."""
    kube, home = other(sandbox), "/api/v1/namespaces/default/secrets"
    for each in kube.call("GET", home)["items"]:
        if each["metadata"].get("labels"):
            kube.call(
                "PATCH", f"{home}/{each['metadata']['name']}", {"data": dict.fromkeys(each["data"], "eA==")}
            )


MARKED = (
    "api/v1/serviceaccounts",
    "api/v1/configmaps",
    "api/v1/services",
    "apis/apps/v1/deployments",
    "apis/apps/v1/daemonsets",
    "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
)


def relabelled(sandbox: Running) -> None:
    """Somebody gives all of the plug-in's objects another label."""
    kube = other(sandbox)
    for path in MARKED:
        for each in kube.call("GET", f"/{path}")["items"]:
            if (each["metadata"].get("labels") or {}).get("app") == "bwki":
                start, _, plural = path.rpartition("/")
                space = (
                    f"/namespaces/{each['metadata']['namespace']}" if "namespace" in each["metadata"] else ""
                )
                kube.call(
                    "PATCH",
                    f"/{start}{space}/{plural}/{each['metadata']['name']}",
                    {"metadata": {"labels": {"app": "another"}}},
                )


def uncertified(sandbox: Running) -> None:
    """Somebody writes something else into the Secrets of its certificates."""
    kube, home = other(sandbox), "/api/v1/namespaces/bwki/secrets"
    for each in kube.call("GET", home)["items"]:
        kube.call(
            "PATCH", f"{home}/{each['metadata']['name']}", {"data": dict.fromkeys(each["data"], "eA==")}
        )


def resized(sandbox: Running) -> None:
    """Somebody gives the job more workers."""
    other(sandbox).call("PATCH", f"{JOBS}/tensorflow-benchmarks", {"spec": {"slotsPerWorker": 2}})


DRIFTS: dict[str, tuple[Callable[[Running], None], ...]] = {
    "bitfusion_server": (hardware, strayed, half_imported),
    "token_secret": (overwritten,),
    "registry_credential": (overwritten,),
    "bitfusion_device_plugin": (relabelled, uncertified),
    "mpi_job": (resized,),
    "virtual_machine": (turned,),
    "bitfusion_vm": (turned,),
    FROM_LIBRARY: (half_imported,),
    OWN_GROUP: (hardware, strayed, half_imported),
}
