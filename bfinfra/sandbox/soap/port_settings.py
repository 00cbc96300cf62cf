"""A distributed switch's and its port groups' default settings of a port. Source: a switch of
vCenter 8.0.1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bfinfra.sandbox.inventory.vmtypes import fields, vim

VMWARE, PORT = vim.dvs.VmwareDistributedVirtualSwitch, vim.dvs.DistributedVirtualPort
TRAFFIC = (
    "management",
    "faultTolerance",
    "vmotion",
    "virtualMachine",
    "iSCSI",
    "nfs",
    "hbr",
    "vsan",
    "vdp",
    "backupNfc",
    "nvmetcp",
)


def defaults(uplinks: list[str], *, inherited: bool) -> Any:
    """Every setting of a port; `inherited`: a group has it from its switch."""
    flag, number = partial(vim.BoolPolicy, inherited=inherited), partial(vim.IntPolicy, inherited=inherited)
    return VMWARE.VmwarePortConfigPolicy(
        blocked=flag(value=False),
        vmDirectPathGen2Allowed=flag(value=False),
        inShapingPolicy=_shaping(inherited),
        outShapingPolicy=_shaping(inherited),
        vendorSpecificConfig=PORT.VendorSpecificConfig(inherited=inherited),
        networkResourcePoolKey=vim.StringPolicy(inherited=inherited, value="-1"),
        filterPolicy=PORT.FilterPolicy(inherited=inherited),
        vlan=VMWARE.VlanIdSpec(inherited=inherited, vlanId=0),
        qosTag=number(value=-1),
        uplinkTeamingPolicy=_teaming(uplinks, inherited),
        securityPolicy=VMWARE.SecurityPolicy(
            inherited=inherited,
            allowPromiscuous=flag(value=False),
            macChanges=flag(value=False),
            forgedTransmits=flag(value=False),
        ),
        ipfixEnabled=flag(value=False),
        txUplink=flag(value=False),
        lacpPolicy=VMWARE.UplinkLacpPolicy(
            inherited=inherited,
            enable=flag(value=False),
            mode=vim.StringPolicy(inherited=inherited, value="passive"),
        ),
        macManagementPolicy=VMWARE.MacManagementPolicy(
            inherited=inherited,
            allowPromiscuous=False,
            macChanges=False,
            forgedTransmits=False,
            macLearningPolicy=VMWARE.MacLearningPolicy(inherited=inherited, enabled=False),
        ),
        VNI=number(),
    )


def _shaping(inherited: bool) -> Any:
    rate = partial(vim.LongPolicy, inherited=inherited)
    return PORT.TrafficShapingPolicy(
        inherited=inherited,
        enabled=vim.BoolPolicy(inherited=inherited, value=False),
        averageBandwidth=rate(value=100_000_000),
        peakBandwidth=rate(value=100_000_000),
        burstSize=rate(value=100 << 20),
    )


def _teaming(uplinks: list[str], inherited: bool) -> Any:
    flag = partial(vim.BoolPolicy, inherited=inherited)
    failures = VMWARE.FailureCriteria(
        inherited=inherited,
        checkSpeed=vim.StringPolicy(inherited=inherited, value="minimum"),
        speed=vim.IntPolicy(inherited=inherited, value=10),
        checkDuplex=flag(value=False),
        fullDuplex=flag(value=False),
        checkErrorPercent=flag(value=False),
        percentage=vim.IntPolicy(inherited=inherited),
        checkBeacon=flag(value=False),
    )
    return VMWARE.UplinkPortTeamingPolicy(
        inherited=inherited,
        policy=vim.StringPolicy(inherited=inherited, value="loadbalance_srcid"),
        reversePolicy=flag(value=True),
        notifySwitches=flag(value=True),
        rollingOrder=flag(value=False),
        failureCriteria=failures,
        uplinkPortOrder=VMWARE.UplinkPortOrderPolicy(inherited=inherited, activeUplinkPort=uplinks),
    )


def configured(settings: object, given: object) -> Any:
    """The settings with the given ones in their place; what is unset in `given` is kept."""
    for info in fields(given) if given is not None else ():
        if (value := getattr(given, info.name)) not in (None, []):
            setattr(settings, info.name, value)
    return settings


def group_policy() -> Any:
    """Return the settings of its group that a port may override."""
    return VMWARE.VMwarePortgroupPolicy(
        blockOverrideAllowed=True,
        shapingOverrideAllowed=False,
        vendorConfigOverrideAllowed=False,
        livePortMovingAllowed=False,
        portConfigResetAtDisconnect=True,
        networkResourcePoolOverrideAllowed=False,
        trafficFilterOverrideAllowed=False,
        vlanOverrideAllowed=False,
        uplinkTeamingOverrideAllowed=False,
        securityPolicyOverrideAllowed=False,
        ipfixOverrideAllowed=False,
        macManagementOverrideAllowed=False,
    )


def switch_settings() -> dict[str, Any]:
    """Return the other properties of a switch."""
    allocation = vim.DistributedVirtualSwitch.HostInfrastructureTrafficResource.ResourceAllocation
    return {
        "numStandalonePorts": 0,
        "numPorts": 0,
        "networkResourceManagementEnabled": True,
        "defaultProxySwitchMaxNumPorts": 512,
        "policy": vim.DistributedVirtualSwitch.SwitchPolicy(
            autoPreInstallAllowed=True, autoUpgradeAllowed=True, partialUpgradeAllowed=True
        ),
        "infrastructureTrafficResourceConfig": [
            vim.DistributedVirtualSwitch.HostInfrastructureTrafficResource(
                key=key,
                description=f"{key} Traffic Type",
                allocationInfo=allocation(
                    limit=-1, shares=vim.SharesInfo(shares=50, level="normal"), reservation=0
                ),
            )
            for key in TRAFFIC
        ],
        "networkResourceControlVersion": "version3",
        "pnicCapacityRatioForReservation": 75,
        "ipfixConfig": VMWARE.IpfixConfig(
            activeFlowTimeout=60, idleFlowTimeout=15, samplingRate=4096, internalFlowsOnly=False
        ),
        "lacpApiVersion": "multipleLag",
        "multicastFilteringMode": "snooping",
    }
