"""Properties that follow from others: summaries, and the lists that mirror a reference the other way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

Rule = Callable[["Inventory", "Managed"], Any]
COMPUTED: dict[tuple[str, str], Rule] = {}
OF_ITSELF: set[str] = {"summary"}
"""Properties of a virtual machine that follow from the machine alone."""
UNSTABLE: set[str] = set()
"""Properties that differ by caller or by moment. They are never cached."""
MIB = 1 << 20


def computed(kind: str, name: str) -> Callable[[Rule], Rule]:
    """Register the rule for a property of a pyVmomi type ("vim.VirtualMachine")."""

    def register(rule: Rule) -> Rule:
        COMPUTED[kind, name] = rule
        return rule

    return register


def refs(found: list[Managed]) -> list[Any]:
    """The references of objects."""
    return [each.ref for each in found]


def referring(inventory: Inventory, managed: Managed, kind: Any, field: str) -> list[Any]:
    """References of the objects of a type that name this one in a field."""
    index = inventory.remembered(f"{kind.__name__} {field}", lambda: indexed(inventory, kind, field))
    found: list[Any] = index.get(managed.moid, [])
    return found


def indexed(inventory: Inventory, kind: object, field: str) -> dict[str, list[Any]]:
    """References of the objects of a type, by the id that their field names."""
    index: dict[str, list[Any]] = defaultdict(list)
    for each in inventory.of(kind):
        value = each["runtime"].host if field == "host" else each.props.get(field)
        for target in value if isinstance(value, list) else [value]:
            if target is not None:
                index[target._moId].append(each.ref)  # noqa: SLF001 - pyVmomi's public name
    return index


@computed("vim.Folder", "childEntity")
def _children(inventory: Inventory, folder: Managed) -> Any:
    return refs(inventory.children(folder))


@computed("vim.ComputeResource", "host")
def _hosts(inventory: Inventory, cluster: Managed) -> Any:
    return refs([each for each in inventory.children(cluster) if each.is_a(vim.HostSystem)])


@computed("vim.HostSystem", "vm")
def _vms_of_host(inventory: Inventory, host: Managed) -> Any:
    return referring(inventory, host, vim.VirtualMachine, "host")


@computed("vim.ResourcePool", "vm")
def _vms_of_pool(inventory: Inventory, pool: Managed) -> Any:
    return referring(inventory, pool, vim.VirtualMachine, "resourcePool")


@computed("vim.ResourcePool", "resourcePool")
def _pools_of_pool(inventory: Inventory, pool: Managed) -> Any:
    return refs([each for each in inventory.children(pool) if each.is_a(vim.ResourcePool)])


@computed("vim.Datastore", "vm")
def _vms_of_datastore(inventory: Inventory, datastore: Managed) -> Any:
    return referring(inventory, datastore, vim.VirtualMachine, "datastore")


@computed("vim.Network", "vm")
def _vms_of_network(inventory: Inventory, network: Managed) -> Any:
    return referring(inventory, network, vim.VirtualMachine, "network")


@computed("vim.Network", "host")
def _hosts_of_network(inventory: Inventory, network: Managed) -> Any:
    return referring(inventory, network, vim.HostSystem, "network")


@computed("vim.Network", "summary")
def _network_summary(_: Inventory, network: Managed) -> Any:
    return vim.Network.Summary(network=network.ref, name=network.name, accessible=True, ipPoolName="")


@computed("vim.Datastore", "summary")
def _datastore_summary(inventory: Inventory, datastore: Managed) -> Any:
    info = datastore["info"]
    return vim.Datastore.Summary(
        datastore=datastore.ref,
        name=datastore.name,
        url=info.url,
        capacity=datastore.hidden["capacity"],
        freeSpace=free_space(inventory, datastore),
        accessible=True,
        type="VMFS",
        multipleHostAccess=len(datastore["host"]) > 1,
        maintenanceMode="normal",
    )


def free_space(inventory: Inventory, datastore: Managed) -> int:
    """Its capacity in bytes, without that of the disks on it."""
    used = sum(
        disk.capacityInBytes or 0
        for vm in inventory.vms()
        for disk in disks(vm)
        if disk.backing.datastore == datastore.ref
    )
    return max(0, int(datastore.hidden["capacity"]) - used)


def disks(vm: Managed) -> list[Any]:
    """The machine's virtual disks."""
    return [each for each in vm["config"].hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]


@computed("vim.ComputeResource", "summary")
def _cluster_summary(inventory: Inventory, cluster: Managed) -> Any:
    hosts = [each for each in inventory.children(cluster) if each.is_a(vim.HostSystem)]
    up = [
        each
        for each in hosts
        if each["runtime"].connectionState == "connected" and not each["runtime"].inMaintenanceMode
    ]
    return vim.ClusterComputeResource.Summary(
        totalCpu=sum(map(mhz, hosts)),
        totalMemory=sum(each["hardware"].memorySize for each in hosts),
        numCpuCores=sum(each["hardware"].cpuInfo.numCpuCores for each in hosts),
        numCpuThreads=sum(each["hardware"].cpuInfo.numCpuThreads for each in hosts),
        effectiveCpu=sum(map(mhz, up)),
        effectiveMemory=sum(each["hardware"].memorySize for each in up) // MIB,
        numHosts=len(hosts),
        numEffectiveHosts=len(up),
        overallStatus="green",
        currentFailoverLevel=0,
        numVmotions=0,
    )


def mhz(host: Managed) -> int:
    """The host's MHz over all cores."""
    cpu = host["hardware"].cpuInfo
    return int(cpu.numCpuCores * cpu.hz // 1_000_000)


@computed("vim.HostSystem", "summary")
def _host_summary(inventory: Inventory, host: Managed) -> Any:
    hardware, config, runtime = host["hardware"], host["config"], host["runtime"]
    cpu, system = hardware.cpuInfo, hardware.systemInfo
    return vim.host.Summary(
        host=host.ref,
        overallStatus=host["overallStatus"],
        rebootRequired=bool(host.hidden.get("reboot_required")),
        runtime=runtime,
        config=vim.host.Summary.ConfigSummary(
            name=host.name, port=902, vmotionEnabled=True, faultToleranceEnabled=False, product=config.product
        ),
        hardware=vim.host.Summary.HardwareSummary(
            vendor=system.vendor,
            model=system.model,
            uuid=system.uuid,
            memorySize=hardware.memorySize,
            cpuModel="Intel(R) Xeon(R) Gold 6248",
            cpuMhz=cpu.hz // 1_000_000,
            numCpuPkgs=cpu.numCpuPackages,
            numCpuCores=cpu.numCpuCores,
            numCpuThreads=cpu.numCpuThreads,
            numNics=4,
            numHBAs=2,
        ),
        quickStats=vim.host.Summary.QuickStats(
            overallCpuUsage=0, overallMemoryUsage=used_memory(inventory, host), uptime=0
        ),
    )


def used_memory(inventory: Inventory, host: Managed) -> int:
    """MiB of the machines that run on the host."""
    machines = (inventory.get(ref) for ref in referring(inventory, host, vim.VirtualMachine, "host"))
    return sum(vm["config"].hardware.memoryMB for vm in machines if vm["runtime"].powerState == "poweredOn")


@computed("vim.ResourcePool", "runtime")
def _pool_runtime(inventory: Inventory, pool: Managed) -> Any:
    owner = inventory.get(pool["owner"])
    totals = _cluster_summary(inventory, owner)
    machines = [
        inventory.get(ref)["config"] for ref in referring(inventory, pool, vim.VirtualMachine, "resourcePool")
    ]
    memory = sum((each.memoryAllocation.reservation or 0) for each in machines) * MIB
    cpu = sum((each.cpuAllocation.reservation or 0) for each in machines)
    return vim.ResourcePool.RuntimeInfo(
        memory=usage(totals.totalMemory, memory), cpu=usage(totals.totalCpu, cpu), overallStatus="green"
    )


def usage(limit: int, reserved: int) -> Any:
    """A pool's usage: what is reserved of its limit."""
    left = max(0, limit - reserved)
    return vim.ResourcePool.ResourceUsage(
        reservationUsed=reserved,
        reservationUsedForVm=reserved,
        unreservedForPool=left,
        unreservedForVm=left,
        overallUsage=0,
        maxUsage=limit,
    )


@computed("vim.ResourcePool", "summary")
def _pool_summary(inventory: Inventory, pool: Managed) -> Any:
    return vim.ResourcePool.Summary(
        name=pool.name, config=pool["config"], runtime=_pool_runtime(inventory, pool)
    )


@computed("vim.ManagedEntity", "effectiveRole")
def _effective_role(_: Inventory, __: Managed) -> Any:
    return [-1]


@computed("vim.ManagedEntity", "customValue")
def _custom_value(_: Inventory, entity: Managed) -> Any:
    return entity.props.get("value") or []


@computed("vim.VirtualMachine", "summary")
def _vm_summary(_: Inventory, vm: Managed) -> Any:
    config, guest, devices = vm["config"], vm["guest"], vm["config"].hardware.device
    return vim.vm.Summary(
        vm=vm.ref,
        runtime=vm["runtime"],
        overallStatus=vm["overallStatus"],
        customValue=vm.props.get("value") or [],
        config=vim.vm.Summary.ConfigSummary(
            name=vm.name,
            template=config.template,
            vmPathName=config.files.vmPathName,
            memorySizeMB=config.hardware.memoryMB,
            cpuReservation=config.cpuAllocation.reservation,
            memoryReservation=config.memoryAllocation.reservation,
            numCpu=config.hardware.numCPU,
            numEthernetCards=sum(isinstance(each, vim.vm.device.VirtualEthernetCard) for each in devices),
            numVirtualDisks=len(disks(vm)),
            uuid=config.uuid,
            instanceUuid=config.instanceUuid,
            guestId=config.guestId,
            guestFullName=config.guestFullName,
            annotation=config.annotation,
            managedBy=config.managedBy,
            hwVersion=config.version,
        ),
        guest=vim.vm.Summary.GuestSummary(
            toolsStatus=guest.toolsStatus,
            toolsRunningStatus=guest.toolsRunningStatus,
            hostName=guest.hostName,
            ipAddress=guest.ipAddress,
        ),
        quickStats=vim.vm.Summary.QuickStats(guestHeartbeatStatus=vm["guestHeartbeatStatus"]),
        storage=vim.vm.Summary.StorageSummary(
            committed=0,
            uncommitted=sum(d.capacityInBytes or 0 for d in disks(vm)),
            unshared=0,
            timestamp=config.modified,
        ),
    )
