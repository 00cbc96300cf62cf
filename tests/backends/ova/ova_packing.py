"""OVAs packed by hand, so that every part of one can be wrong by itself."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

DISK = struct.pack("<4sII", b"KDMV", 3, 0x30001) + bytes(range(256)) * 40
"""The header of a stream-optimised VMDK, as far as bfinfra reads it, and anything."""
OVF = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
 xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf">
  <References><File ovf:href="a-disk1.vmdk" ovf:id="file1" ovf:size="{size}"/></References>
  <DiskSection><Info/><Disk ovf:capacity="50" ovf:capacityAllocationUnits="byte * 2^30" ovf:diskId="vmdisk1" ovf:fileRef="file1"/>
    <Disk ovf:capacity="1048576" ovf:diskId="vmdisk2"/></DiskSection>
  <NetworkSection><Info/><Network ovf:name="Management"><Description>Where people are.</Description></Network></NetworkSection>
  <DeploymentOptionSection><Info/><Configuration ovf:id="small" ovf:default="true"><Label ovf:msgid="o.small"/></Configuration>
    <Configuration ovf:id="large"><Label>Large</Label></Configuration></DeploymentOptionSection>
  <VirtualSystem ovf:id="a"><Info/><Name>a</Name>
    <OperatingSystemSection/>
    <ProductSection ovf:class="bf" ovf:instance="1"><Info/><Product>Bitfusion</Product><Vendor>VMware</Vendor><Version>3.0.0</Version>
      <FullVersion>3.0.0-11</FullVersion>
      <Category>General</Category>
      <Property ovf:key="host" ovf:type="string" ovf:userConfigurable="true" ovf:qualifiers="MinLen(1) MaxLen(9)"><Label>Host</Label></Property>
      <Property ovf:key="secret" ovf:type="string" ovf:password="true" ovf:userConfigurable="true"/>
      <Property ovf:key="port" ovf:type="uint16" ovf:userConfigurable="true" ovf:value="56001"/>
      <Property ovf:key="built" ovf:type="string" ovf:value="then"/>
    </ProductSection>
    <ProductSection><Info/><Property ovf:key="plain" ovf:type="boolean" ovf:userConfigurable="true"><Value ovf:value="True"/></Property></ProductSection>
    <EulaSection><Info/><License>Be kind.
Share.</License></EulaSection>
    <VirtualHardwareSection><Info/>
      <System><vssd:VirtualSystemType>vmx-17</vssd:VirtualSystemType></System>
      <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>4</rasd:VirtualQuantity></Item>
      <Item ovf:configuration="large"><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>8</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>32768</rasd:VirtualQuantity></Item>
      <Item><rasd:Connection>Management</rasd:Connection><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceType>10</rasd:ResourceType></Item>
      <Item><rasd:Address>0</rasd:Address><rasd:InstanceID>4</rasd:InstanceID><rasd:ResourceSubType>lsilogic</rasd:ResourceSubType><rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>1</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/vmdisk2</rasd:HostResource><rasd:InstanceID>6</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource><rasd:InstanceID>5</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>
    </VirtualHardwareSection>
  </VirtualSystem>
  <Strings xml:lang="de-DE"><Msg ovf:msgid="o.small">Klein</Msg></Strings>
  <Strings xml:lang="en-US"><Msg ovf:msgid="o.small">Small</Msg></Strings>
</Envelope>
""".replace("{size}", str(len(DISK)))


def manifest(files: Mapping[str, bytes], algorithm: str = "SHA256") -> bytes:
    """A right manifest."""
    return "".join(
        f"{algorithm}({name})= {hashlib.new(algorithm.lower(), data).hexdigest()}\n"
        for name, data in files.items()
    ).encode()


def parts(ovf: str | bytes = OVF, **more: bytes) -> dict[str, bytes]:
    """The files of a right OVA, by name; `more` with _ for a dot."""
    text = ovf if isinstance(ovf, bytes) else ovf.encode()
    files = {
        "a.ovf": text,
        "a-disk1.vmdk": DISK,
        **{name.replace("_", "."): data for name, data in more.items()},
    }
    return {
        "a.ovf": text,
        "a.mf": manifest(files),
        **{name: data for name, data in files.items() if name != "a.ovf"},
    }


def pack(
    path: Path,
    files: Mapping[str, bytes] | None = None,
    *members: tarfile.TarInfo,
    form: int = tarfile.USTAR_FORMAT,
) -> Path:
    """Write an OVA of `files`, then bare `members`."""
    with tarfile.open(path, "w", format=form) as tar:
        for name, data in (parts() if files is None else files).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for member in members:
            header = member.tobuf(form)
            tar.fileobj.write(header)
            tar.offset += len(header)
    return path
