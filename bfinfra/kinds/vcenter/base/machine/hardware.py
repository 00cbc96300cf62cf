"""What vSphere does to the hardware of an existing VM, and what it doesn't. Pure."""

from __future__ import annotations

from bfinfra.backends.vcenter.vm import Disk, Vm
from bfinfra.model.errors import Refusal
from bfinfra.model.units import bytes_text


def grows(disk: Disk, size: int, owner: str, field: str) -> dict[int, int]:
    """Disk key → `size` in bytes, if the disk has to grow. Raises Refusal, at `field`, where it can't become
    that size. `owner`: the VM or template, in words.
    """
    if disk.capacity > size:
        has = bytes_text(disk.capacity)
        raise Refusal(
            f"the {field.removesuffix('.size').replace('disks.', 'disk ')} of {owner} has {has} already",
            field=field,
            why="a disk can't shrink",
            next=f"write {has}" if field != "disk" else f"write {has}, or leave it out",
        )
    if disk.capacity == size:
        return {}
    if disk.linked:
        raise Refusal(
            f"the disk {disk.address or disk.label} of {owner} can't grow",
            field=field,
            why="it holds only what differs from another file: the VM has a snapshot, or is a linked clone",
            next="delete the snapshots or consolidate the disk in vCenter, then run this again",
        )
    return {disk.key: size}


def check_cpus(machine: Vm, cpus: int, per_socket: int | None) -> None:
    """Raises Refusal if an existing VM can't get so many CPUs. `per_socket`: its cores per socket, if vSphere
    doesn't choose them.
    """
    if per_socket and machine.cpus != cpus and cpus % per_socket:
        raise Refusal(
            f"{cpus} CPUs are no multiple of the {per_socket} cores per socket of {machine.name}",
            field="cpus",
            why="vCenter refuses that",
            next=f"write a multiple of {per_socket}, or change its cores per socket in vCenter",
        )
