"""An ESXi host as the API shows it: hardware, PCI devices, passthrough, services of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import field, vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

ESXI = vim.AboutInfo(
    name="VMware ESXi",
    fullName="VMware ESXi 8.0.3 build-24022510",
    vendor="VMware, Inc.",
    version="8.0.3",
    build="24022510",
    osType="vmnix-x86",
    productLineId="embeddedEsx",
    apiType="HostAgent",
    apiVersion="8.0.3.0",
)
OPTIONS = (
    ("Net.PVRDMAVmknic", ""),
    ("Config.HostAgent.log.level", "info"),
    ("UserVars.SuppressShellWarning", "0"),
    ("Misc.LogDir", "[] /scratch/log"),
)
DISPLAY = 0x0300  # PCI base class of display controllers; 0x0302 is a 3D controller


def add_host(
    inventory: Inventory, cluster: Managed, name: str, host: Any, networks: list[Managed]
) -> Managed:
    """A connected host of a cluster."""
    moid, devices = inventory.new_id("host-", 10), [pci_device(each) for each in host.pci]
    runtime = vim.host.RuntimeInfo(
        connectionState="connected",
        powerState="poweredOn",
        inMaintenanceMode=False,
        bootTime=now(inventory),
        standbyMode="none",
        inQuarantineMode=False,
        cryptoState="incapable",
        stateEncryption=vim.host.RuntimeInfo.StateEncryptionInfo(protectionMode="none"),
    )
    made = inventory.add(
        vim.HostSystem,
        moid,
        {
            "pci_memory": {each.id: int(each.memory or 0) for each in host.pci},
            "sriov": [each.id for each in host.pci if each.sriov],
            "profiles": list(dict.fromkeys(p for each in host.pci for p in each.profiles)),
            "card_profiles": {each.id: list(each.profiles) for each in host.pci if each.profiles},
            "vgpu_driver": host.vgpu_driver,
            "device_groups": {name: list(each) for name, each in host.device_groups.items()},
        },
        name=name,
        parent=cluster.ref,
        value=[],
        overallStatus="green",
        configStatus="green",
        runtime=runtime,
        datastore=[],
        network=[each.ref for each in networks],
        hardware=hardware(inventory, name, host, devices),
        config=vim.host.ConfigInfo(
            host=vim.HostSystem(moid),
            product=ESXI,
            option=[vim.option.OptionValue(key=key, value=value) for key, value in OPTIONS],
            pciPassthruInfo=[passthru(each) for each in devices],
            dateTimeInfo=clock(host.ntp),
            service=vim.host.ServiceInfo(service=[ntpd(host.ntp)]),
            graphicsConfig=graphics_config(host),
            graphicsInfo=graphics_info(host),
            network=host_network(name),
            firewall=vim.host.FirewallInfo(
                defaultPolicy=vim.host.FirewallInfo.DefaultPolicy(incomingBlocked=True, outgoingBlocked=True),
                ruleset=rulesets(),
            ),
        ),
    )
    made["configManager"] = managers(inventory, moid, host)
    offer_vgpus(inventory, made)
    return made


def graphics_config(host: Any) -> Any:
    """Return how a host uses its cards for graphics."""
    return vim.host.GraphicsConfig(
        hostDefaultGraphicsType=host.graphics,
        sharedPassthruAssignmentPolicy="performance",
        deviceType=[
            vim.host.GraphicsConfig.DeviceType(
                deviceId=each.id, graphicsType=host.graphics, vgpuMode="sameSize"
            )
            for each in host.pci
            if each.class_ & 0xFF00 == DISPLAY
        ],
    )


def graphics_info(host: Any) -> list[Any]:
    """The cards of a host, as its graphics manager lists them."""
    return [
        vim.host.GraphicsInfo(
            deviceName=each.name,
            vendorName=vendor_name(int(each.vendor)),
            pciId=each.id,
            graphicsType=host.graphics,
            memorySizeInKB=int(each.memory or 0) >> 10,
            vm=[],
        )
        for each in host.pci
        if each.class_ & 0xFF00 == DISPLAY
    ]


def managers(inventory: Inventory, moid: str, host: Any) -> Any:
    """The managers of a host: each sets, or tells of, one side of it."""
    telling = {
        name: inventory.add(field(vim.host.ConfigManager, name).type, f"{name}-{moid}", {"host": moid}).ref
        for name in ("dateTimeSystem", "serviceSystem", "storageSystem")
    }
    return vim.host.ConfigManager(
        **telling,
        pciPassthruSystem=inventory.add(
            vim.host.PciPassthruSystem,
            f"pciPassthruSystem-{moid}",
            {"host": moid},
            pciPassthruInfo=[],
            sriovDevicePoolInfo=[],
        ).ref,
        networkSystem=inventory.add(vim.host.NetworkSystem, f"networkSystem-{moid}", {"host": moid}).ref,
        firewallSystem=inventory.add(vim.host.FirewallSystem, f"firewallSystem-{moid}", {"host": moid}).ref,
        graphicsManager=inventory.add(
            vim.host.GraphicsManager, f"graphicsManager-{moid}", {"host": moid}
        ).ref,
        imageConfigManager=inventory.add(
            vim.host.ImageConfigManager, f"imageConfigManager-{moid}", {"host": moid, "vibs": dict(host.vibs)}
        ).ref,
        advancedOption=inventory.add(
            vim.option.OptionManager, f"EsxHostAdvSettings-{moid}", {"host": moid}
        ).ref,
        assignableHardwareManager=inventory.add(
            vim.host.AssignableHardwareManager, f"assignableHardwareManager-{moid}", {"host": moid}
        ).ref,
    )


def offer_vgpus(inventory: Inventory, host: Managed) -> bool:
    """Let the host report the profiles of its cards if its driver and its graphics allow it. Returns whether
    they do.
    """
    vibs = inventory.get(host["configManager"].imageConfigManager).hidden["vibs"]
    config, driver = host["config"], host.hidden.get("vgpu_driver", "")
    shared = config.graphicsConfig.hostDefaultGraphicsType == "sharedDirect"
    able = shared and (not driver or driver in vibs)
    config.sharedPassthruGpuTypes = host.hidden.get("profiles", []) if able else []
    return able


def clock(servers: tuple[str, ...]) -> Any:
    """Return the time servers of the host."""
    return vim.host.DateTimeInfo(
        timeZone=vim.host.DateTimeSystem.TimeZone(key="UTC", name="UTC", description="UTC", gmtOffset=0),
        systemClockProtocol="ntp",
        ntpConfig=vim.host.NtpConfig(server=list(servers)),
        ptpConfig=vim.host.PtpConfig(port=[vim.host.PtpConfig.PtpPort(index=0)]),
        enabled=bool(servers),
        disableEvents=False,
        disableFallback=True,
        inFallbackState=False,
        serviceSync=bool(servers),
    )


def ntpd(servers: tuple[str, ...]) -> Any:
    """The NTP client; it runs if the host has a time server."""
    return vim.host.Service(
        key="ntpd",
        label="NTP Daemon",
        required=False,
        uninstallable=False,
        running=bool(servers),
        ruleset=["ntpClient"],
        policy="on",
    )


def host_network(name: str) -> Any:
    """Four NICs, and the management adapter."""
    link = vim.host.PhysicalNic.LinkSpeedDuplex(speedMb=100000, duplex=True)
    nics = [
        vim.host.PhysicalNic(
            key=f"key-vim.host.PhysicalNic-vmnic{number}",
            device=f"vmnic{number}",
            pci=f"0000:{number:02x}:00.0",
            mac=f"00:50:56:00:00:{number:02x}",
            wakeOnLanSupported=False,
            spec=vim.host.PhysicalNic.Specification(
                ip=vim.host.IpConfig(dhcp=False),
                linkSpeed=link,
                enableEnhancedNetworkingStack=False,
                ensInterruptEnabled=False,
            ),
            linkSpeed=link,
            validLinkSpecification=[link],
            driver="nmlx5_core",
            vmDirectPathGen2Supported=False,
            resourcePoolSchedulerAllowed=True,
            autoNegotiateSupported=True,
            enhancedNetworkingStackSupported=True,
            ensInterruptSupported=True,
        )
        for number in range(4)
    ]
    ip = vim.host.IpConfig(dhcp=True)
    management = vim.host.VirtualNic(
        device="vmk0",
        key="key-vim.host.VirtualNic-vmk0",
        portgroup="Management Network",
        spec=vim.host.VirtualNic.Specification(
            ip=ip,
            mtu=1500,
            mac="00:50:56:00:01:00",
            tsoEnabled=True,
            netStackInstanceKey="defaultTcpipStack",
            systemOwned=False,
        ),
    )
    return vim.host.NetworkInfo(
        pnic=nics,
        vnic=[management],
        dnsConfig=vim.host.DnsConfig(
            dhcp=False,
            hostName=name.partition(".")[0],
            domainName=name.partition(".")[2],
            address=["192.0.2.53"],
            searchDomain=[name.partition(".")[2]],
        ),
        vswitch=[],
        portgroup=[],
        ipV6Enabled=True,
        atBootIpV6Enabled=True,
        nvdsToVdsMigrationRequired=False,
    )


def rulesets() -> list[Any]:
    """Some of a host's firewall rule sets."""
    ports = {
        "sshServer": (22, "inbound", True),
        "pvrdma": (28250, "inbound", False),
        "ntpClient": (123, "outbound", True),
    }
    return [
        vim.host.Ruleset(
            key=key,
            label=key,
            required=False,
            enabled=on,
            rule=[
                vim.host.Ruleset.Rule(
                    port=port, direction=way, portType="dst", protocol="tcp" if port != 123 else "udp"
                )
            ],
        )
        for key, (port, way, on) in ports.items()
    ]


def now(inventory: Inventory) -> datetime:
    """The clock's time as the API gives it."""
    return datetime.fromtimestamp(inventory.clock.now(), UTC)


def signed(value: int, bits: int = 16) -> int:
    """A PCI number as the API's signed types carry it: 0x8086 is -32634."""
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def unsigned(value: int, bits: int = 16) -> int:
    """The PCI number of a signed one."""
    return value & ((1 << bits) - 1)


def pci_device(device: Any) -> Any:
    """A PCI device; the address "0000:3b:00.0" gives bus, slot and function."""
    _, bus, rest = device.id.split(":")
    slot, function = rest.split(".")
    return vim.host.PciDevice(
        id=device.id,
        classId=signed(int(device.class_)),
        bus=signed(int(bus, 16), 8),
        slot=signed(int(slot, 16), 8),
        function=int(function, 16),
        vendorId=signed(int(device.vendor)),
        subVendorId=signed(int(device.vendor)),
        vendorName=vendor_name(int(device.vendor)),
        deviceId=signed(int(device.device)),
        subDeviceId=0,
        deviceName=device.name,
        physicalSlot=int(slot, 16),
        slotDescription=f"Slot{int(bus, 16)}",
    )


def vendor_name(vendor: int) -> str:
    """The vendor's name in the PCI list."""
    names = {
        0x10DE: "NVIDIA Corporation",
        0x8086: "Intel Corporation",
        0x15B3: "Mellanox Technologies",
        0x1002: "Advanced Micro Devices, Inc. [AMD/ATI]",
    }
    return names.get(vendor, "Unknown")


def passthru(device: Any) -> Any:
    """Return the host's passthrough information of the device: off at first."""
    return vim.host.PciPassthruInfo(
        id=device.id,
        dependentDevice="",
        passthruEnabled=False,
        passthruActive=False,
        passthruCapable=unsigned(device.classId) >> 8 != 0x06,
    )


def hardware(inventory: Inventory, name: str, host: Any, devices: list[Any]) -> Any:
    """The sizes from the world file; `cores` are spread over two packages."""
    cores = int(host.cores)
    return vim.host.HardwareInfo(
        systemInfo=vim.host.SystemInfo(
            vendor="Dell Inc.", model="PowerEdge R740", uuid=inventory.new_uuid(name)
        ),
        biosInfo=vim.host.BIOSInfo(biosVersion=host.firmware, vendor="Dell Inc."),
        cpuInfo=vim.host.CpuInfo(
            numCpuPackages=2, numCpuCores=cores, numCpuThreads=2 * cores, hz=int(host.mhz) * 1_000_000
        ),
        cpuPkg=[
            vim.host.CpuPackage(
                index=index,
                vendor="intel",
                hz=int(host.mhz) * 1_000_000,
                busHz=100_000_000,
                description="Intel(R) Xeon(R) Gold 6248",
                threadId=[0],
                cpuFeature=[],
            )
            for index in range(2)
        ],
        memorySize=int(host.memory),
        pciDevice=devices,
    )


def come_back(inventory: Inventory, host: Managed) -> None:
    """The end of a reboot: connected again, passthrough as it was configured."""
    with inventory.lock:
        if inventory.objects.get(host.moid) is not host:
            return
        runtime = host["runtime"]
        runtime.powerState, runtime.bootTime = "poweredOn", now(inventory)
        for each in host["config"].pciPassthruInfo:
            each.passthruActive = each.passthruEnabled
        host.hidden["reboot_required"] = False
        connect(inventory, host, "connected")


def connect(inventory: Inventory, host: Managed, state: str) -> None:
    """VCenter sees the host and its machines, or has lost them: what it says of them is what it last saw."""
    host["runtime"].connectionState = state
    there = [vm for vm in inventory.vms() if vm["runtime"].host == host.ref]
    for vm in there:
        vm["runtime"].connectionState = "connected" if state == "connected" else "disconnected"
    inventory.touch(host, *there)
