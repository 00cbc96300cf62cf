"""What a session has read beyond what is followed."""

from __future__ import annotations

from pyVmomi import vim

from bfinfra.backends.vcenter.reads import Named, Reads

FOLDER = vim.Folder("group-d1")


def test_only_what_was_read_since_is_beyond() -> None:
    known, read = Reads(), Reads()
    read.all(FOLDER, {vim.VirtualMachine: ["name"]})
    read.some(vim.HostSystem, ["host-1"], ["config"])
    known.take(read)
    assert (read.beyond(known).below, read.beyond(known).named) == ({}, {})
    read.all(FOLDER, {vim.VirtualMachine: ["name", "parent"], vim.Network: ["name"]})
    read.some(vim.HostSystem, ["host-1", "host-2"], ["config"])
    fresh = read.beyond(known)
    assert fresh.below["group-d1"].paths == {vim.VirtualMachine: {"parent"}, vim.Network: {"name"}}
    assert fresh.named == {vim.HostSystem: Named({"host-2"}, {"config"})}


def test_of_further_properties_all_objects_are_beyond() -> None:
    known, read = Reads(), Reads()
    read.some(vim.HostSystem, ["host-1", "host-2"], ["config"])
    known.take(read)
    read.some(vim.HostSystem, ["host-1"], ["hardware"])
    assert read.beyond(known).named == {vim.HostSystem: Named({"host-1", "host-2"}, {"config", "hardware"})}


def test_what_is_gone_is_forgotten() -> None:
    read = Reads()
    read.some(vim.HostSystem, ["host-1", "host-2"], ["config"])
    read.forget(["host-1"])
    assert read.named[vim.HostSystem].moids == {"host-2"}
