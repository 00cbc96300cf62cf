"""Changes that people and programs make by hand on the sandbox of tests/torture/watched.yaml, drawn by chance."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import random
import ssl
import subprocess
import time
import urllib.error
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyVmomi import vim, vmodl
from rights.given import administrator, other

from bfinfra.sandbox import Running

LONGEST = 60  # seconds of a task
GIB = 1 << 30


class NotDone(Exception):
    """A program says that it could not change something."""


REFUSED = (vmodl.MethodFault, urllib.error.HTTPError, subprocess.CalledProcessError, NotDone)
"""What a change raises that the server does not accept: the object is gone, runs, or is in use."""


class Rest:
    """vCenter's REST API, logged in as its administrator."""

    def __init__(self, sandbox: Running) -> None:
        host, _, port = sandbox.clients["GOVC_URL"].removeprefix("https://").partition("/")[0].rpartition(":")
        self._where, self._trust = (
            (host, int(port)),
            ssl.create_default_context(cafile=str(sandbox.ca_file)),
        )
        user = sandbox.clients["GOVC_USERNAME"], sandbox.env["VCENTER_PASSWORD"]
        self._headers = {"vmware-api-session-id": self.call("POST", "/api/session", headers=basic(*user))}

    def call(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """The answer's JSON. Raises HTTPError."""
        line = http.client.HTTPSConnection(*self._where, timeout=LONGEST, context=self._trust)
        with contextlib.closing(line):
            line.request(
                method,
                path,
                json.dumps(body) if body is not None else None,
                {"Content-Type": "application/json", **(headers or self._headers)},
            )
            answer = line.getresponse()
            data = answer.read()
        if answer.status >= 300:
            raise urllib.error.HTTPError(path, answer.status, data.decode(), answer.headers, None)
        return json.loads(data) if data else None


def basic(name: str, password: str) -> dict[str, str]:
    """The header of a login."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@dataclass
class Hands:
    """Whoever changes something. `si`: a pyVmomi session; `govc` and `kubectl` run these; `host`: the one whose settings
    change; `done` and `refused` count by name. A server that the changes don't reach may be left out.
    """

    chance: random.Random
    si: Any = None
    kube: Any = None
    rest: Any = None
    govc: Any = None
    kubectl: Any = None
    host: str = "esx1.small.test"
    done: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)

    def change(self, some: Changes) -> None:
        """One of these changes; the next where a server does not accept it."""
        each = self.chance.choice(some)
        count = self.done
        try:
            each(self)
        except REFUSED:
            count = self.refused
        count[each.__name__] = count.get(each.__name__, 0) + 1

    def find(self, kind: type[Any], *names: str) -> Any:
        """One of the objects of a type, of these names where some are given. Raises ManagedObjectNotFound."""
        content = self.si.content
        view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
        try:
            found = [each for each in view.view if not names or each.name in names]
        finally:
            view.DestroyView()
        if not found:
            raise vmodl.fault.ManagedObjectNotFound
        return self.chance.choice(found)


def settled(task: vim.Task) -> None:
    """Wait for its end. Raises its error."""
    limit = time.monotonic() + LONGEST
    while task.info.state not in ("success", "error"):
        assert time.monotonic() < limit, "a task does not end"
        time.sleep(0.005)
    if task.info.state == "error":
        raise task.info.error


def machine(hands: Hands) -> Any:
    """A machine of the site, whatever its name is now."""
    return hands.find(vim.VirtualMachine, "bf-01", "worker-1", "worker-2", "renamed")


def power(hands: Hands) -> None:
    vm = machine(hands)
    on = vm.runtime.powerState == "poweredOn"
    settled(vm.PowerOffVM_Task() if on else vm.PowerOnVM_Task())


def reconfigured(hands: Hands, **spec: Any) -> None:
    vm = machine(hands)
    if vm.runtime.powerState == "poweredOn":
        settled(vm.PowerOffVM_Task())
    settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(**spec)))


def memory(hands: Hands) -> None:
    reconfigured(hands, memoryMB=hands.chance.choice((4, 8, 24)) << 10)


def processors(hands: Hands) -> None:
    reconfigured(hands, numCPUs=hands.chance.choice((2, 4, 8)))


def annotation(hands: Hands) -> None:
    reconfigured(hands, annotation=str(hands.chance.random()))


def option(hands: Hands) -> None:
    value = hands.chance.choice(("true", "false", ""))
    key = hands.chance.choice(("example.bitfusion.client", "pciPassthru.use64bitMMIO", "own.key"))
    reconfigured(hands, extraConfig=[vim.option.OptionValue(key=key, value=value)])


def mark(hands: Hands) -> None:
    """The machine is the site's no more."""
    reconfigured(hands, extraConfig=[vim.option.OptionValue(key="bfinfra.mark", value="")])


def reservation(hands: Hands) -> None:
    reconfigured(
        hands,
        memoryReservationLockedToMax=False,
        memoryAllocation=vim.ResourceAllocationInfo(reservation=hands.chance.choice((0, 1024))),
    )


def adapter(hands: Hands) -> None:
    vm = machine(hands)
    cards = [
        each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard)
    ]
    if not cards:
        raise vmodl.fault.ManagedObjectNotFound
    change = vim.vm.device.VirtualDeviceSpec(operation="remove", device=cards[0])
    if vm.runtime.powerState == "poweredOn":
        settled(vm.PowerOffVM_Task())
    settled(vm.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change])))


def renamed_machine(hands: Hands) -> None:
    vm = machine(hands)
    settled(vm.Rename_Task(hands.chance.choice((vm.name, "renamed"))))


def machine_gone(hands: Hands) -> None:
    vm = machine(hands)
    if vm.runtime.powerState == "poweredOn":
        settled(vm.PowerOffVM_Task())
    settled(vm.Destroy_Task())


def clone(hands: Hands) -> None:
    """Of a machine, with its mark."""
    vm = machine(hands)
    where = vim.vm.RelocateSpec(pool=vm.resourcePool)
    settled(vm.CloneVM_Task(vm.parent, f"copy-{hands.chance.randrange(3)}", vim.vm.CloneSpec(location=where)))


def host_note(hands: Hands) -> None:
    host = hands.find(vim.HostSystem, hands.host)
    host.setCustomValue("own.note", str(hands.chance.random()))


def host_option(hands: Hands) -> None:
    host = hands.find(vim.HostSystem, hands.host)
    value = hands.chance.choice(("vmk1", "vmk3"))
    host.configManager.advancedOption.UpdateOptions(
        [vim.option.OptionValue(key="Net.PVRDMAVmknic", value=value)]
    )


def passthrough(hands: Hands) -> None:
    host = hands.find(vim.HostSystem, hands.host)
    config = vim.host.PciPassthruConfig(id="0000:3b:00.0", passthruEnabled=hands.chance.random() < 0.5)
    host.configManager.pciPassthruSystem.UpdatePassthruConfig([config])


def cluster_option(hands: Hands) -> None:
    cluster = hands.find(vim.ClusterComputeResource, "farm")
    value = vim.option.OptionValue(
        key="VgpuMMAutomationTimeoutSecs", value=hands.chance.choice(("-1", "0", "60"))
    )
    spec = vim.cluster.ConfigSpecEx(drsConfig=vim.cluster.DrsConfigInfo(option=[value]))
    settled(cluster.ReconfigureComputeResource_Task(spec, True))


def pool(hands: Hands) -> None:
    found = hands.find(vim.ResourcePool, "gpu", "bitfusion", "own-pool")
    memory = vim.ResourceAllocationInfo(
        reservation=hands.chance.choice((0, 2048)), limit=hands.chance.choice((-1, 65536))
    )
    found.UpdateConfig(
        found.name,
        vim.ResourceConfigSpec(memoryAllocation=memory, cpuAllocation=vim.ResourceAllocationInfo()),
    )


def renamed_pool(hands: Hands) -> None:
    found = hands.find(vim.ResourcePool, "gpu", "bitfusion", "own-pool")
    settled(found.Rename_Task(hands.chance.choice(("gpu", "bitfusion", "own-pool"))))


def pool_gone(hands: Hands) -> None:
    settled(hands.find(vim.ResourcePool, "bitfusion", "own-pool").Destroy_Task())


def switch(hands: Hands) -> None:
    found = hands.find(vim.DistributedVirtualSwitch)
    spec = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(
        configVersion=found.config.configVersion, maxMtu=hands.chance.choice((1500, 9000))
    )
    settled(found.ReconfigureDvs_Task(spec))


def switch_host(hands: Hands) -> None:
    """A host leaves the switch."""
    found = hands.find(vim.DistributedVirtualSwitch)
    member = hands.chance.choice(found.config.host or [None])
    if member is None:
        raise vmodl.fault.ManagedObjectNotFound
    change = vim.dvs.HostMember.ConfigSpec(operation="remove", host=member.config.host)
    spec = vim.dvs.VmwareDistributedVirtualSwitch.ConfigSpec(
        configVersion=found.config.configVersion, host=[change]
    )
    settled(found.ReconfigureDvs_Task(spec))


def vlan(hands: Hands) -> None:
    found = hands.find(vim.dvs.DistributedVirtualPortgroup, "high-speed", "other-speed")
    tag = vim.dvs.VmwareDistributedVirtualSwitch.VlanIdSpec(vlanId=hands.chance.choice((31, 32)))
    spec = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
        configVersion=found.config.configVersion,
        defaultPortConfig=vim.dvs.VmwareDistributedVirtualSwitch.VmwarePortConfigPolicy(vlan=tag),
    )
    settled(found.ReconfigureDVPortgroup_Task(spec))


def renamed_group(hands: Hands) -> None:
    found = hands.find(vim.dvs.DistributedVirtualPortgroup, "high-speed", "other-speed")
    settled(found.Rename_Task(hands.chance.choice(("high-speed", "other-speed"))))


def group_gone(hands: Hands) -> None:
    settled(hands.find(vim.dvs.DistributedVirtualPortgroup, "high-speed", "other-speed").Destroy_Task())


def labels(hands: Hands) -> None:
    label = hands.chance.choice(("a", "b", None))
    hands.kube.call("PATCH", "/api/v1/namespaces/training", {"metadata": {"labels": {"team": label}}})


def namespace_gone(hands: Hands) -> None:
    hands.kube.call("DELETE", "/api/v1/namespaces/training")


def token(hands: Hands) -> None:
    space = hands.chance.choice(("default", "training"))
    found = secret(hands, space)
    data = {"data": dict.fromkeys(list(found["data"])[:1], "bm90aGluZw==")}
    hands.kube.call("PATCH", f"/api/v1/namespaces/{space}/secrets/{found['metadata']['name']}", data)


def token_gone(hands: Hands) -> None:
    space = hands.chance.choice(("default", "training"))
    hands.kube.call(
        "DELETE", f"/api/v1/namespaces/{space}/secrets/{secret(hands, space)['metadata']['name']}"
    )


def token_unmarked(hands: Hands) -> None:
    """Its labels go, and with them the mark."""
    space = hands.chance.choice(("default", "training"))
    found = secret(hands, space)
    hands.kube.call(
        "PATCH",
        f"/api/v1/namespaces/{space}/secrets/{found['metadata']['name']}",
        {"metadata": {"labels": None}},
    )


def secret(hands: Hands, space: str) -> Any:
    """The token's Secret, unless its labels are gone: whoever follows objects by a label hears no more of it.
    Raises ManagedObjectNotFound.
    """
    for each in hands.kube.call("GET", f"/api/v1/namespaces/{space}/secrets")["items"]:
        if each["type"] == "Opaque" and each.get("data") and each["metadata"].get("labels"):
            return each
    raise vmodl.fault.ManagedObjectNotFound


QUEUE = "/apis/sched.example.com/v1/namespaces/default/queues/research"


def queue(hands: Hands) -> None:
    hands.kube.call("PATCH", QUEUE, {"spec": {"weight": hands.chance.randrange(4)}})


def queue_gone(hands: Hands) -> None:
    hands.kube.call("DELETE", QUEUE)


def settings(hands: Hands) -> None:
    hands.kube.call(
        "PATCH",
        "/api/v1/namespaces/default/configmaps/queues",
        {"data": {"policy": hands.chance.choice(("fair", "first"))}},
    )


def replicas(hands: Hands) -> None:
    hands.kube.call(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/queues",
        {"spec": {"replicas": hands.chance.randrange(1, 4)}},
    )


def definition_gone(hands: Hands) -> None:
    """The type of object goes, and its objects with it."""
    hands.kube.call(
        "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.sched.example.com"
    )


def supervisor_namespace(hands: Hands) -> None:
    limit = hands.chance.choice((4096, 65536))
    hands.rest.call(
        "PATCH", "/api/vcenter/namespaces/instances/team-a", {"resource_spec": {"memory_limit": limit}}
    )


def supervisor_namespace_gone(hands: Hands) -> None:
    hands.rest.call("DELETE", "/api/vcenter/namespaces/instances/team-a")


def vm_class(hands: Hands) -> None:
    size = hands.chance.choice((2, 4))
    hands.rest.call(
        "PATCH", "/api/vcenter/namespace-management/virtual-machine-classes/gpu-small", {"cpu_count": size}
    )


def library(hands: Hands) -> None:
    for each in hands.rest.call("GET", "/api/content/subscribed-library"):
        found = hands.rest.call("GET", f"/api/content/library/{each}")
        if found["name"] == "releases":
            changed = {"subscription_info": {"on_demand": hands.chance.random() < 0.5}}
            hands.rest.call("PATCH", f"/api/content/subscribed-library/{each}", changed)
            return
    raise vmodl.fault.ManagedObjectNotFound


Changes = tuple[Callable[[Hands], None], ...]
IN_CLUSTERS: Changes = (
    *(labels, token, queue, settings, replicas) * 2,
    *(namespace_gone, token_gone, token_unmarked, queue_gone),
)
"""Changes of objects in a Kubernetes cluster, all of which it reports."""
FOLLOWED: Changes = (
    *(power, memory, processors, annotation, option, reservation, renamed_machine) * 2,
    *(mark, adapter, machine_gone, clone, host_note, passthrough, cluster_option),
    *(pool, renamed_pool, pool_gone, switch, switch_host, vlan, renamed_group, group_gone),
    *IN_CLUSTERS,
)
"""Changes that servers report."""
READ_AT_INTERVALS: Changes = (host_option, supervisor_namespace, supervisor_namespace_gone, vm_class, library)


@contextlib.contextmanager
def hands(sandbox: Running, chance: random.Random) -> Iterator[Hands]:
    """Hands with a session of their own."""
    with administrator(sandbox) as si:
        yield Hands(chance, si, other(sandbox), Rest(sandbox))
