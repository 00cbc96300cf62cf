"""A virtual machine as the API shows it, before its specification is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import fields, support, vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

DEVICE = vim.vm.device
GUESTS = {
    "other3xLinux64Guest": "Other 3.x or later Linux (64-bit)",
    "other4xLinux64Guest": "Other 4.x or later Linux (64-bit)",
    "vmwarePhoton64Guest": "VMware Photon OS (64-bit)",
    "ubuntu64Guest": "Ubuntu Linux (64-bit)",
    "otherGuest": "Other (32-bit)",
    "otherLinux64Guest": "Other Linux (64-bit)",
    "otherGuest64": "Other (64-bit)",
}


def add_vm(
    inventory: Inventory, name: str, folder: Managed, place: tuple[Managed, Managed, Managed]
) -> Managed:
    """A machine that is off, with the devices that every machine has; `place`: pool, host and datastore."""
    pool, host, datastore = place
    moid = inventory.new_id("vm-", 1001)
    return inventory.add(
        vim.VirtualMachine,
        moid,
        name=name,
        parent=folder.ref,
        value=[],
        overallStatus="green",
        configStatus="green",
        guestHeartbeatStatus="gray",
        resourcePool=pool.ref,
        datastore=[datastore.ref],
        network=[],
        environmentBrowser=environment_of(inventory, host),
        capability=capability(),
        config=config(inventory, moid, name, datastore),
        guest=stopped_guest(),
        runtime=vim.vm.RuntimeInfo(
            host=host.ref,
            connectionState="connected",
            powerState="poweredOff",
            faultToleranceState="notConfigured",
            recordReplayState="inactive",
            maxCpuUsage=0,
            maxMemoryUsage=0,
            toolsInstallerMounted=False,
            numMksConnections=0,
            onlineStandby=False,
            consolidationNeeded=False,
            paused=False,
            snapshotInBackground=False,
            instantCloneFrozen=False,
        ),
    )


def environment_of(inventory: Inventory, host: Managed) -> Any:
    """The environment browser of the host's cluster."""
    return inventory.get(host.parent)["environmentBrowser"]


def config(inventory: Inventory, moid: str, name: str, datastore: Managed) -> Any:
    """The configuration of a machine with defaults alone."""
    created, uuid = now(inventory), inventory.new_uuid(f"bios {moid}")
    return vim.vm.ConfigInfo(
        name=name,
        changeVersion=change_version(inventory),
        modified=created,
        createDate=created,
        guestFullName=GUESTS["otherGuest64"],
        guestId="otherGuest64",
        version="vmx-21",
        uuid=uuid,
        locationId=uuid,
        instanceUuid=inventory.new_uuid(f"instance {moid}"),
        template=False,
        alternateGuestName="",
        annotation="",
        firmware="bios",
        files=files(f"[{datastore.name}] {name}", name),
        flags=flags(),
        defaultPowerOps=vim.vm.DefaultPowerOpInfo(
            powerOffType="soft",
            suspendType="hard",
            resetType="soft",
            defaultPowerOffType="soft",
            defaultSuspendType="hard",
            defaultResetType="soft",
            standbyAction="checkpoint",
        ),
        hardware=vim.vm.VirtualHardware(
            numCPU=1,
            memoryMB=4096,
            numCoresPerSocket=1,
            virtualICH7MPresent=False,
            virtualSMCPresent=False,
            device=basic_devices(),
        ),
        cpuAllocation=shares("normal", 1000),
        memoryAllocation=shares("normal", 40960),
        memoryHotAddEnabled=False,
        cpuHotAddEnabled=False,
        cpuHotRemoveEnabled=False,
        memoryReservationLockedToMax=False,
        latencySensitivity=vim.LatencySensitivity(level="normal"),
        bootOptions=boot_options(),
        nestedHVEnabled=False,
        vPMCEnabled=False,
        changeTrackingEnabled=False,
        tools=tools(),
        hotPlugMemoryLimit=4096,
        datastoreUrl=datastore_url(datastore),
        **untouched(),
    )


def datastore_url(datastore: Managed) -> list[object]:
    """The datastore of a machine's configuration, by name and URL."""
    url = datastore["info"].url.removeprefix("ds://").rstrip("/")
    return [vim.vm.ConfigInfo.DatastoreUrlPair(name=datastore.name, url=url)]


def untouched() -> dict[str, Any]:
    """Default settings of a machine. Source: machines of vCenter 8.0.1."""
    return {
        "npivTemporaryDisabled": True,
        "swapPlacement": "inherit",
        "vAssertsEnabled": False,
        "maxMksConnections": 40,
        "guestAutoLockEnabled": True,
        "scheduledHardwareUpgradeInfo": vim.vm.ScheduledHardwareUpgradeInfo(
            upgradePolicy="never", scheduledHardwareUpgradeStatus="none"
        ),
        "messageBusTunnelEnabled": False,
        "guestIntegrityInfo": vim.vm.GuestIntegrityInfo(enabled=False),
        "migrateEncryption": "opportunistic",
        "sgxInfo": vim.vm.SgxInfo(epcSize=0, flcMode="unlocked"),
        "ftEncryptionMode": "ftEncryptionOpportunistic",
        "guestMonitoringModeInfo": vim.vm.GuestMonitoringModeInfo(),
        "sevEnabled": False,
        "pmemFailoverEnabled": False,
    }


def flags() -> Any:
    """A machine's flags."""
    return vim.vm.FlagInfo(
        enableLogging=True,
        useToe=False,
        runWithDebugInfo=False,
        monitorType="release",
        htSharing="any",
        snapshotDisabled=False,
        snapshotLocked=False,
        diskUuidEnabled=False,
        snapshotPowerOffBehavior="powerOff",
        recordReplayEnabled=False,
        faultToleranceType="unset",
        cbrcCacheEnabled=False,
        vvtdEnabled=False,
        vbsEnabled=False,
    )


def boot_options() -> Any:
    """Return the boot options of a machine."""
    return vim.vm.BootOptions(
        enterBIOSSetup=False,
        efiSecureBootEnabled=False,
        bootRetryEnabled=False,
        bootRetryDelay=10000,
        networkBootProtocol="ipv4",
    )


def tools() -> Any:
    """Return the settings that VMware Tools read from the machine's configuration."""
    return vim.vm.ToolsConfigInfo(
        toolsVersion=0,
        afterPowerOn=True,
        afterResume=True,
        beforeGuestStandby=True,
        beforeGuestShutdown=True,
        toolsUpgradePolicy="manual",
        syncTimeWithHostAllowed=True,
        syncTimeWithHost=False,
        lastInstallInfo=vim.vm.ToolsConfigInfo.ToolsLastInstallInfo(counter=0),
    )


def files(directory: str, name: str) -> Any:
    """Return the paths of the machine's files."""
    return vim.vm.FileInfo(
        vmPathName=f"{directory}/{name}.vmx",
        snapshotDirectory=f"{directory}/",
        suspendDirectory=f"{directory}/",
        logDirectory=f"{directory}/",
    )


def shares(level: str, count: int) -> Any:
    """A machine's resource allocation: nothing reserved, no limit."""
    return vim.ResourceAllocationInfo(
        reservation=0, limit=-1, expandableReservation=False, shares=vim.SharesInfo(level=level, shares=count)
    )


def capability() -> Any:
    """Return the machine's capabilities."""
    wanted = {
        info.name: info.name
        in {
            "settingVideoRamSupported",
            "bootOptionsSupported",
            "multipleSnapshotsSupported",
            "vmNpivWwnSupported",
            "toolsSyncTimeSupported",
        }
        for info in fields(vim.vm.Capability)
        if info.type is bool and not info.flags & support.F_OPTIONAL
    }
    return vim.vm.Capability(**wanted)


def change_version(inventory: Inventory) -> str:
    """A new change version: its time and a number that only grows."""
    return f"{now(inventory).strftime('%Y-%m-%dT%H:%M:%S')}.{inventory.new_id('', 1).zfill(6)}Z"


def stopped_guest() -> Any:
    """The guest of a machine that is off."""
    return vim.vm.GuestInfo(
        guestState="notRunning",
        toolsStatus="toolsNotRunning",
        toolsRunningStatus="guestToolsNotRunning",
        toolsVersionStatus2="guestToolsUnmanaged",
        guestOperationsReady=False,
        interactiveGuestOperationsReady=False,
        guestStateChangeSupported=False,
        net=[],
    )


def basic_devices() -> list[Any]:
    """Buses, keyboard, mouse and screen."""

    def described(device: Any, label: str) -> Any:
        device.deviceInfo = vim.Description(label=label, summary=label)
        return device

    return [
        described(DEVICE.VirtualIDEController(key=200, busNumber=0, device=[]), "IDE 0"),
        described(DEVICE.VirtualIDEController(key=201, busNumber=1, device=[]), "IDE 1"),
        described(DEVICE.VirtualPS2Controller(key=300, busNumber=0, device=[600, 700]), "PS2 controller 0"),
        described(DEVICE.VirtualPCIController(key=100, busNumber=0, device=[500, 12000]), "PCI controller 0"),
        described(DEVICE.VirtualSIOController(key=400, busNumber=0, device=[]), "SIO controller 0"),
        described(DEVICE.VirtualKeyboard(key=600, controllerKey=300, unitNumber=0), "Keyboard"),
        described(
            DEVICE.VirtualPointingDevice(
                key=700,
                controllerKey=300,
                unitNumber=1,
                backing=DEVICE.VirtualPointingDevice.DeviceBackingInfo(
                    deviceName="", useAutoDetect=False, hostPointingDevice="autodetect"
                ),
            ),
            "Pointing device",
        ),
        described(
            DEVICE.VirtualVideoCard(
                key=500,
                controllerKey=100,
                unitNumber=0,
                videoRamSizeInKB=4096,
                numDisplays=1,
                useAutoDetect=False,
                enable3DSupport=False,
                use3dRenderer="automatic",
                graphicsMemorySizeInKB=262144,
            ),
            "Video card",
        ),
        described(
            DEVICE.VirtualVMCIDevice(
                key=12000,
                controllerKey=100,
                unitNumber=17,
                id=-1,
                allowUnrestrictedCommunication=False,
                filterEnable=True,
            ),
            "VMCI device",
        ),
    ]
