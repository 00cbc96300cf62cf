"""The OVF descriptor of the sandbox's appliance. Its property keys are the sandbox's own: the real ones are
not public.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope vmw:buildId="build-18167430" xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" \
xmlns:cim="http://schemas.dmtf.org/wbem/wscim/1/common" \
xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" \
xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData" \
xmlns:vmw="http://www.vmware.com/schema/ovf" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
"""
EULA = """VMware end user licence agreement (a text of the sandbox).

By accepting it you accept nothing: this appliance holds no software."""
GIB = 2**30


@dataclass(frozen=True)
class Property:
    """One vApp property. `type` as in OVF: string, boolean, password, with `qualifiers`."""

    key: str
    label: str
    description: str
    type: str = "string"
    value: str = ""
    qualifiers: str = ""
    password: bool = False
    category: str = ""


@dataclass(frozen=True)
class Disk:
    """A disk: its file, the file's size and its capacity, in bytes."""

    href: str
    size: int
    capacity: int


@dataclass(frozen=True)
class Appliance:
    """The machine that the descriptor describes."""

    name: str
    product: str
    version: str
    disks: tuple[Disk, ...]
    networks: tuple[str, ...] = ("Network 1", "Network 2", "Network 3", "Network 4")


SYSTEM = (
    Property(
        "hostname",
        "Hostname",
        "Host name of the appliance, fully qualified.",
        qualifiers="MinLen(1) MaxLen(253)",
        category="General",
    ),
    Property(
        "customer_password",
        "Password of customer",
        "Password of the operating system's user `customer`.",
        "password",
        password=True,
        qualifiers="MinLen(8) MaxLen(128)",
        category="General",
    ),
    Property(
        "nvidia_license_accept",
        "Accept the NVIDIA driver licence",
        "Download and install the NVIDIA driver under its licence.",
        "boolean",
        "False",
        category="General",
    ),
    Property(
        "vcenter_url",
        "vCenter URL",
        "https://FQDN of the vCenter Server to register with.",
        qualifiers="MinLen(1)",
        category="vCenter",
    ),
    Property(
        "vcenter_guid",
        "vCenter GUID",
        "Unique id of the vCenter Server, shown in the client's address.",
        qualifiers="MinLen(36) MaxLen(36)",
        category="vCenter",
    ),
    Property(
        "vcenter_username",
        "vCenter user name",
        "User that registers the plug-in.",
        qualifiers="MinLen(1)",
        category="vCenter",
    ),
    Property(
        "vcenter_password",
        "vCenter password",
        "Password of that user.",
        "password",
        password=True,
        qualifiers="MinLen(1)",
        category="vCenter",
    ),
    Property(
        "vcenter_thumbprint",
        "vCenter TLS certificate thumbprint",
        "SHA-1 or SHA-256 thumbprint of vCenter's certificate.",
        qualifiers="MinLen(1)",
        category="vCenter",
    ),
)


def descriptor(appliance: Appliance) -> str:
    """The OVF envelope, version 1.1."""
    return "".join(
        (
            HEAD,
            _references(appliance),
            _disks(appliance),
            _networks(appliance),
            (
                f"  <VirtualSystem ovf:id={quoteattr(appliance.name)}>\n    <Info>A virtual "
                f"machine</Info>\n    <Name>{escape(appliance.name)}</Name>\n"
            ),
            _system(),
            _product(appliance),
            *(_adapter(number) for number in range(1, len(appliance.networks) + 1)),
            (
                "    <EulaSection>\n      <Info>End user licence agreement</Info>\n      "
                f"<License>{escape(EULA)}</License>\n    </EulaSection>\n"
            ),
            _hardware(appliance),
            "  </VirtualSystem>\n</Envelope>\n",
        )
    )


def _references(appliance: Appliance) -> str:
    files = "".join(
        f'    <File ovf:href={quoteattr(d.href)} ovf:id="file{n}" ovf:size="{d.size}"/>\n'
        for n, d in enumerate(appliance.disks, 1)
    )
    return f"  <References>\n{files}  </References>\n"


def _disks(appliance: Appliance) -> str:
    form = "http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"
    rows = "".join(
        f'    <Disk ovf:capacity="{d.capacity // GIB}" ovf:capacityAllocationUnits="byte * 2^30" '
        f'ovf:diskId="vmdisk{n}" '
        f'ovf:fileRef="file{n}" ovf:format="{form}" ovf:populatedSize="{d.size}"/>\n'
        for n, d in enumerate(appliance.disks, 1)
    )
    return f"  <DiskSection>\n    <Info>Virtual disks</Info>\n{rows}  </DiskSection>\n"


def _networks(appliance: Appliance) -> str:
    rows = "".join(
        (
            f"    <Network ovf:name={quoteattr(n)}>\n      <Description>The {escape(n)} "
            "network</Description>\n    </Network>\n"
        )
        for n in appliance.networks
    )
    return f"  <NetworkSection>\n    <Info>Logical networks</Info>\n{rows}  </NetworkSection>\n"


def _system() -> str:
    return (
        '    <OperatingSystemSection ovf:id="101" vmw:osType="vmwarePhoton64Guest">\n      <Info>The '
        "guest operating system</Info>\n"
        "      <Description>VMware Photon OS (64-bit)</Description>\n    </OperatingSystemSection>\n"
    )


def _product(appliance: Appliance) -> str:
    return (
        '    <ProductSection ovf:required="false">\n      <Info>Appliance</Info>\n'
        f"      <Product>{escape(appliance.product)}</Product>\n      <Vendor>VMware, Inc.</Vendor>\n"
        f"      <Version>{escape(appliance.version.partition('-')[0])}</Version>\n      "
        f"<FullVersion>{escape(appliance.version)}</FullVersion>\n"
        f"{_properties(SYSTEM)}    </ProductSection>\n"
    )


def _adapter(number: int) -> str:
    first, what = number == 1, f"Network adapter {number}"
    properties = (
        Property(
            "ip_cidr",
            f"{what} IPv4 address/CIDR",
            "Address and prefix, for example 10.0.0.5/24." + ("" if first else " Empty: unused."),
            qualifiers="MinLen(1)" if first else "",
            category=what,
        ),
        Property("gateway", f"{what} gateway", "IPv4 gateway.", category=what),
        Property(
            "mtu",
            f"{what} MTU",
            "Bytes, 1500 to 9000.",
            "uint16",
            "1500",
            qualifiers="MinValue(1500) MaxValue(9000)",
            category=what,
        ),
        *(
            (
                Property("dns", f"{what} DNS servers", "Comma-separated.", category=what),
                Property("ntp", f"{what} NTP servers", "Comma-separated.", category=what),
            )
            if first
            else ()
        ),
    )
    return (
        f'    <ProductSection ovf:class="network" ovf:instance="{number}" ovf:required="false">\n      '
        f"<Info>{what}</Info>\n"
        f"{_properties(properties)}    </ProductSection>\n"
    )


def _properties(properties: tuple[Property, ...]) -> str:
    out, category = [], ""
    for each in properties:
        if each.category != category:
            category = each.category
            out.append(f"      <Category>{escape(category)}</Category>\n")
        qualifiers = f" ovf:qualifiers={quoteattr(each.qualifiers)}" if each.qualifiers else ""
        kind = (
            'ovf:type="string" ovf:password="true"' if each.password else f"ovf:type={quoteattr(each.type)}"
        )
        out.append(
            f'      <Property ovf:key={quoteattr(each.key)} {kind} ovf:userConfigurable="true" '
            f"ovf:value={quoteattr(each.value)}{qualifiers}>\n"
            f"        <Label>{escape(each.label)}</Label>\n        "
            f"<Description>{escape(each.description)}</Description>\n      </Property>\n"
        )
    return "".join(out)


def _hardware(appliance: Appliance) -> str:
    items = [
        _item(1, 3, "8 virtual CPU(s)", AllocationUnits="hertz * 10^6", VirtualQuantity="8"),
        _item(2, 4, "32768MB of memory", AllocationUnits="byte * 2^20", VirtualQuantity="32768"),
        _item(3, 6, "SCSI controller 0", Address="0", ResourceSubType="VirtualSCSI"),
        *(
            _item(
                10 + n,
                17,
                f"Hard disk {n}",
                AddressOnParent=str(n - 1),
                HostResource=f"ovf:/disk/vmdisk{n}",
                Parent="3",
            )
            for n in range(1, len(appliance.disks) + 1)
        ),
        *(
            _item(
                20 + n,
                10,
                f"Network adapter {n}",
                AddressOnParent=str(6 + n),
                AutomaticAllocation="true",
                Connection=name,
                ResourceSubType="VmxNet3",
            )
            for n, name in enumerate(appliance.networks, 1)
        ),
    ]
    return (
        '    <VirtualHardwareSection ovf:transport="com.vmware.guestInfo">\n      <Info>Virtual '
        "hardware requirements</Info>\n      <System>\n"
        "        <vssd:ElementName>Virtual Hardware Family</vssd:ElementName>\n        "
        "<vssd:InstanceID>0</vssd:InstanceID>\n"
        f"        <vssd:VirtualSystemIdentifier>{escape(appliance.name)}</vssd:VirtualSystemIdentifier>\n"
        "        <vssd:VirtualSystemType>vmx-17</vssd:VirtualSystemType>\n      </System>\n"
        f'{"".join(items)}      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>\n'
        '      <vmw:Config ovf:required="false" vmw:key="cpuHotAddEnabled" vmw:value="false"/>\n    '
        "</VirtualHardwareSection>\n"
    )


def _item(identity: int, kind: int, name: str, **more: str) -> str:
    values = sorted(
        {**more, "ElementName": name, "InstanceID": str(identity), "ResourceType": str(kind)}.items()
    )
    rows = "".join(f"        <rasd:{key}>{escape(value)}</rasd:{key}>\n" for key, value in values)
    return f"      <Item>\n{rows}      </Item>\n"
