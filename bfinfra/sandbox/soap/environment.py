"""EnvironmentBrowser: what a machine in a cluster, or on one host of it, may be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import MIB
from bfinfra.sandbox.inventory.hosts import unsigned
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.device_groups import infos
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.vm_pci import offered, system_id

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

BROWSER = "vim.EnvironmentBrowser"
VERSIONS = ("vmx-13", "vmx-14", "vmx-15", "vmx-17", "vmx-18", "vmx-19", "vmx-20", "vmx-21")


def hosts_of(call: Call, this: Managed, host: object) -> list[Managed]:
    """The host asked for, or the cluster's."""
    owner = call.inventory.objects[this.hidden["owner"]]
    found = [each for each in call.inventory.children(owner) if each.is_a(vim.HostSystem)]
    return [each for each in found if host is None or each.ref == host]


@method(BROWSER, "QueryConfigTarget", writes=False)
def target(call: Call, this: Managed, args: Any) -> Any:
    """Datastores, networks and devices. Passthrough devices are listed while they are active, those with
    SR-IOV by themselves.
    """
    hosts, inventory = hosts_of(call, this, args.host), call.inventory
    if not hosts:
        return None
    cores = max(each["hardware"].cpuInfo.numCpuCores for each in hosts)
    passed = [(host, device) for host in hosts for device in offered(host)]
    plain = [(host, device) for host, device in passed if device.id not in host.hidden["sriov"]]
    virtual = [(host, device) for host, device in passed if device.id in host.hidden["sriov"]]
    return vim.vm.ConfigTarget(
        numCpus=cores * 2,
        numCpuCores=cores,
        numNumaNodes=2,
        maxCpusPerHost=cores * 2,
        maxMemMBOptimalPerf=max(each["hardware"].memorySize for each in hosts) // MIB,
        supportedMaxMemMB=max(each["hardware"].memorySize for each in hosts) // MIB,
        maxSimultaneousThreads=2,
        network=[network_info(inventory, ref) for ref in hosts[0]["network"]],
        pciPassthrough=[
            vim.vm.PciPassthroughInfo(name="", pciDevice=device, systemId=system_id(inventory, host))
            for host, device in plain
        ],
        sriov=[
            vim.vm.SriovInfo(
                name="", pciDevice=device, systemId=system_id(inventory, host), virtualFunction=False
            )
            for host, device in virtual
        ],
        dynamicPassthrough=dynamic(plain),
        vendorDeviceGroupInfo=infos(hosts),
    )


def network_info(inventory: Inventory, ref: object) -> Any:
    """A network as a target."""
    network = inventory.get(ref)
    return vim.vm.NetworkInfo(
        name=network.name,
        network=vim.Network.Summary(network=ref, name=network.name, accessible=True, ipPoolName=""),
    )


def dynamic(passed: list[tuple[Managed, Any]]) -> list[Any]:
    """Kinds of devices for dynamic passthrough, each once."""
    kinds = {(unsigned(device.vendorId), unsigned(device.deviceId)): device for _, device in passed}
    return [
        vim.vm.DynamicPassthroughInfo(
            name=device.deviceName,
            vendorName=device.vendorName,
            deviceName=device.deviceName,
            vendorId=vendor,
            deviceId=number,
            customLabel="",
        )
        for (vendor, number), device in kinds.items()
    ]


@method(BROWSER, "QueryConfigOptionDescriptor", writes=False)
def descriptors(call: Call, this: Managed, _: object) -> Any:
    """The hardware versions."""
    hosts = [each.ref for each in hosts_of(call, this, None)]
    return [
        vim.vm.ConfigOptionDescriptor(
            key=each,
            description=f"Hardware version {each}",
            host=hosts,
            createSupported=True,
            defaultConfigOption=each == VERSIONS[-1],
            runSupported=True,
            upgradeSupported=True,
        )
        for each in VERSIONS
    ]
