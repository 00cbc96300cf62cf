"""govc does the same on the sandbox and on vcsim: what it prints is compared, run by run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.govc import (
    Both,
    Govc,
    added,
    cards,
    connected,
    devices,
    happened,
    listed,
    machine,
    named,
    output,
    policy,
)
from contract.machines import active
from contract.sides import live_vcsim, sandbox_vcenter
from peers.found import USER, Peers, run

from bfinfra import sandbox
from bfinfra.sandbox.factories.ova import make_ova

pytestmark = pytest.mark.peers
OPTIONS = {
    "Name": "bf-01",
    "DiskProvisioning": "thin",
    "PowerOn": False,
    "NetworkMapping": [{"Name": f"Network {n}", "Network": "VM Network"} for n in range(1, 5)],
    "PropertyMapping": [
        {"Key": key, "Value": value}
        for key, value in {
            "hostname": "bf-01.example.test",
            "customer_password": "long-enough",
            "vcenter_url": "https://vc.test",
            "vcenter_guid": "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a",
            "vcenter_username": "u",
            "vcenter_password": "p",
            "vcenter_thumbprint": "AB",
            "network.ip_cidr.1": "10.0.0.5/24",
        }.items()
    ],
}


@pytest.fixture
def govc(world_process: sandbox.Running, empty_vcsim: Peers) -> Iterator[Both]:
    world_process.reset()
    port = world_process.lookup("vc.contract.test", 443)
    assert port
    place = {
        "GOVC_RESOURCE_POOL": "/DC0/host/DC0_C0/Resources",
        "GOVC_HOST": "/DC0/host/DC0_C0/DC0_C0_H0",
        "GOVC_DATASTORE": "LocalDS_0",
        "GOVC_PERSIST_SESSION": "false",
        "GOVC_INSECURE": "1",
        "GOVC_USERNAME": USER,
    }

    def on(server: str, password: str) -> Govc:
        return lambda *words: run(
            [str(empty_vcsim.bin / "govc"), *words],
            {**place, "GOVC_URL": f"https://{server}/sdk", "GOVC_PASSWORD": password},
        )

    both = Both(
        on(f"{port[0]}:{port[1]}", world_process.env["VCENTER_PASSWORD"]),
        on(empty_vcsim.vcsim, empty_vcsim.password),
    )
    yield both
    for ask in (both.sandbox, both.peer):
        for name in ask("ls", "/DC0/vm").split():
            ask("vm.destroy", name) if "bf-" in name else None


@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("ls", "/DC0"),
        ("ls", "/DC0/host"),
        ("ls", "/DC0/datastore"),
        ("find", "/DC0/host/DC0_C0", "-type", "h"),
        ("find", "/", "-type", "d"),
        ("find", "/DC0", "-type", "f"),
        ("find", "/DC0", "-type", "c"),
        ("find", "/DC0", "-type", "m"),
        ("find", "/DC0/host/DC0_C0", "-type", "p"),
        (
            "object.collect",
            "-s",
            "/DC0/host/DC0_C0/DC0_C0_H0",
            "runtime.connectionState",
            "runtime.inMaintenanceMode",
            "name",
        ),
        ("object.collect", "-s", "/DC0/vm", "name", "childType"),
    ],
    ids=" ".join,
)
def test_listings_say_the_same(words: tuple[str, ...], govc: Both) -> None:
    assert govc.same(*words) or words[-1] == "m"


def test_what_is_not_there_is_refused_by_both(govc: Both) -> None:
    assert govc.same("vm.info", "nothing") == []
    assert all("not found" in output for output in govc.fails("vm.power", "-on", "nothing"))


def test_an_ova_is_imported_looked_at_powered_and_destroyed(govc: Both, tmp_path: Path) -> None:
    make_ova(tmp_path / "server.ova")
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    for ask in (govc.sandbox, govc.peer):
        ask("import.ova", f"-options={tmp_path}/options.json", f"{tmp_path}/server.ova")
    govc.same("ls", "/DC0/vm")
    assert govc.same("vm.info", "-json", "bf-01", plain=machine)["power"] == "poweredOff"
    assert [kind for kind, _ in govc.same("device.ls", "-json", "-vm", "bf-01", plain=devices)].count(
        "VirtualDisk"
    ) == 2
    govc.same("vm.change", "-vm", "bf-01", "-m", "4096", "-c", "2", "-e", "a.b=1")
    assert govc.same("vm.info", "-json", "bf-01", plain=machine)["memory"] == 4096
    govc.same("vm.power", "-on", "bf-01", plain=output)
    ours, theirs = govc.fails("vm.power", "-on", "bf-01")
    assert "in the current state (poweredOn)" in ours
    assert "InvalidPowerState" in theirs
    assert govc.same("object.collect", "-s", "/DC0/vm/bf-01", "runtime.powerState") == ["poweredOn"]
    govc.same("vm.power", "-off", "-force", "bf-01", plain=output)
    govc.same("vm.destroy", "bf-01")
    assert govc.same("ls", "/DC0/vm") == []


def test_devices_are_looked_at_and_removed_alike(govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask(
            "vm.create",
            "-on=false",
            "-c",
            "2",
            "-m",
            "1024",
            "-g",
            "otherGuest",
            "-net",
            "VM Network",
            "bf-02",
        )
    before = govc.same("device.ls", "-json", "-vm", "bf-02", plain=added)
    assert len(before) == 1
    govc.same("device.disconnect", "-vm", "bf-02", "ethernet-0", plain=output)
    assert govc.same("device.info", "-json", "-vm", "bf-02", "ethernet-0", plain=connected) == [False]
    govc.same("device.remove", "-vm", "bf-02", "ethernet-0")
    assert govc.same("device.ls", "-json", "-vm", "bf-02", plain=added) == []
    govc.fails("device.remove", "-vm", "bf-02", "ethernet-0")


def test_pools_and_folders_come_and_go_alike(govc: Both) -> None:
    for words in (("pool.create", "/DC0/host/DC0_C0/Resources/theirs"), ("folder.create", "/DC0/vm/theirs")):
        govc.same(*words)
        govc.fails(*words)
    govc.same("find", "/DC0/host/DC0_C0", "-type", "p")
    govc.same("ls", "/DC0/vm")
    govc.same("pool.destroy", "/DC0/host/DC0_C0/Resources/theirs")
    govc.same("object.destroy", "/DC0/vm/theirs", plain=output)
    assert govc.same("ls", "/DC0/vm") == []


def test_a_custom_attribute_is_set_and_read_alike(govc: Both) -> None:
    govc.same("fields.add", "-type", "HostSystem", "theirs", plain=lambda text: bool(text.strip()))
    govc.same("fields.set", "theirs", "x", "/DC0/host/DC0_C0/DC0_C0_H0")
    assert (
        govc.same(
            "fields.info",
            "-n",
            "theirs",
            "/DC0/host/DC0_C0/DC0_C0_H0",
            plain=lambda text: "x" in text.split(),
        )
        is True
    )
    govc.same("fields.rm", "theirs")


def test_cards_are_offered_put_in_and_taken_out_alike(
    govc: Both, world_process: sandbox.Running, empty_vcsim: Peers
) -> None:
    sides = sandbox_vcenter(world_process), live_vcsim(empty_vcsim)
    try:
        for side in sides:
            active(side.open(), side)
        for ask in (govc.sandbox, govc.peer):
            ask(
                "vm.create",
                "-on=false",
                "-c",
                "2",
                "-m",
                "1024",
                "-g",
                "otherGuest",
                "-net",
                "VM Network",
                "bf-03",
            )
        assert govc.same("device.pci.ls", "-json", "-vm", "bf-03", plain=cards) == ["0000:17:00.0"]
        govc.same("device.pci.add", "-vm", "bf-03", "0000:17:00.0")
        govc.fails("device.pci.add", "-vm", "bf-03", "0000:99:00.0")
        assert govc.same("device.info", "-json", "-vm", "bf-03", "pcipassthrough-*", plain=cards) == [
            "0000:17:00.0"
        ]
        for ask in (govc.sandbox, govc.peer):
            (name,) = listed(ask("device.ls", "-vm", "bf-03"), "pcipassthrough-")
            ask("device.pci.remove", "-vm", "bf-03", name)
        govc.fails("device.info", "-vm", "bf-03", "pcipassthrough-*")
    finally:
        for side in sides:
            side.close()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("device.cdrom.add",), "cdrom-"),
        (("device.scsi.add", "-type", "pvscsi"), "pvscsi-"),
        (("vm.network.add", "-net", "VM Network", "-net.adapter", "vmxnet3"), "ethernet-"),
        (("vm.disk.create", "-name", "bf-04/more", "-size", "1G"), "disk-"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_devices_are_added_alike(words: tuple[str, ...], kind: str, govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask(
            "vm.create",
            "-on=false",
            "-c",
            "1",
            "-m",
            "512",
            "-g",
            "otherGuest",
            "-net",
            "VM Network",
            "bf-04",
        )

    before = [len(listed(ask("device.ls", "-vm", "bf-04"), kind)) for ask in (govc.sandbox, govc.peer)]
    for ask in (govc.sandbox, govc.peer):
        ask(words[0], "-vm", "bf-04", *words[1:])
    assert [len(listed(ask("device.ls", "-vm", "bf-04"), kind)) for ask in (govc.sandbox, govc.peer)] == [
        each + 1 for each in before
    ]


def test_tags_and_categories_come_and_go_alike(govc: Both) -> None:
    made = bool  # the id
    assert (
        govc.same(
            "tags.category.create",
            "-d",
            "whose",
            "-t",
            "VirtualMachine",
            "owner",
            plain=lambda text: made(text.strip()),
        )
        is True
    )
    govc.fails("tags.category.create", "owner")
    assert (
        govc.same(
            "tags.create", "-c", "owner", "-d", "theirs", "team-a", plain=lambda text: made(text.strip())
        )
        is True
    )
    govc.fails("tags.create", "-c", "owner", "team-a")
    govc.fails("tags.create", "-c", "nothing", "team-a")
    assert govc.same("tags.category.ls", "-json", plain=named) == [
        ("owner", "whose", "SINGLE", "VirtualMachine")
    ]
    assert govc.same("tags.category.info", "-json", "owner", plain=named) == [
        ("owner", "whose", "SINGLE", "VirtualMachine")
    ]
    assert govc.same("tags.ls", "-json", plain=named) == [("team-a", "theirs", "")]
    govc.same("tags.ls", "-c", "owner")
    govc.same("tags.update", "-d", "of team a", "team-a")
    assert govc.same("tags.info", "-json", "team-a", plain=named) == [("team-a", "of team a", "")]
    govc.same("tags.rm", "-c", "owner", "team-a")
    govc.fails("tags.info", "team-a")
    govc.same("tags.category.rm", "owner")
    govc.fails("tags.category.rm", "owner")
    assert govc.same("tags.ls") == []


def test_tags_are_attached_and_detached_alike(govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask(
            "vm.create",
            "-on=false",
            "-c",
            "1",
            "-m",
            "512",
            "-g",
            "otherGuest",
            "-net",
            "VM Network",
            "bf-05",
        )
        ask("tags.category.create", "-m", "purpose")
        for tag in ("gpu", "test"):
            ask("tags.create", "-c", "purpose", tag)
    vm, host = "/DC0/vm/bf-05", "/DC0/host/DC0_C0/DC0_C0_H0"
    govc.same("tags.attach", "-c", "purpose", "gpu", vm)
    govc.same("tags.attach", "-c", "purpose", "gpu", vm)
    govc.same("tags.attach", "-c", "purpose", "test", vm)
    govc.same("tags.attach", "-c", "purpose", "gpu", host)
    govc.fails("tags.attach", "-c", "purpose", "nothing", vm)
    assert govc.same("tags.attached.ls", "-r", vm) == ["gpu", "test"]
    assert (
        len(
            govc.same(
                "tags.attached.ls",
                "gpu",
                plain=lambda text: sorted(line.partition(":")[0] for line in text.split()),
            )
        )
        == 2
    )
    govc.same("tags.detach", "-c", "purpose", "gpu", vm)
    assert govc.same("tags.attached.ls", "-r", vm) == ["test"]
    govc.same("vm.destroy", "bf-05")
    govc.same("tags.category.rm", "-f", "purpose")
    assert govc.same("tags.ls") == []


def test_storage_policies_come_and_go_alike(govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask("tags.category.create", "-m", "tier")
        ask("tags.create", "-c", "tier", "fast")
    made = bool  # the id
    assert (
        govc.same(
            "storage.policy.create",
            "-d",
            "for claims",
            "-category",
            "tier",
            "-tag",
            "fast",
            "bf-k8s",
            plain=lambda text: made(text.strip()),
        )
        is True
    )
    rules = [
        {
            "id": {"namespace": "http://www.vmware.com/storage/tag", "id": "tier"},
            "constraint": [
                {
                    "propertyInstance": [
                        {"id": "com.vmware.storage.tag.tier.property", "value": {"values": ["fast"]}}
                    ]
                }
            ],
        }
    ]
    assert govc.same("storage.policy.info", "-json", "bf-k8s", plain=policy) == (
        "bf-k8s",
        "for claims",
        "REQUIREMENT",
        {"resourceType": "STORAGE"},
        rules,
    )
    assert govc.same("storage.policy.ls", "bf-k8s", plain=lambda text: text.split()[1:]) == ["bf-k8s"]
    govc.same("storage.policy.rm", "bf-k8s")
    assert all("not found" in output for output in govc.fails("storage.policy.info", "bf-k8s"))
    govc.same("tags.category.rm", "-f", "tier")


def test_what_fits_a_policy_is_what_bears_its_tags(govc: Both) -> None:
    """vcsim takes every datastore for fitting: the sandbox alone."""
    govc.sandbox("tags.category.create", "-m", "tier")
    govc.sandbox("tags.create", "-c", "tier", "fast")
    govc.sandbox("storage.policy.create", "-category", "tier", "-tag", "fast", "bf-k8s")
    fits = lambda: json.loads(govc.sandbox("storage.policy.info", "-json", "-s", "bf-k8s"))["policies"][0][  # noqa: E731 - asked twice
        "compatibleDatastores"
    ]
    assert not fits()
    govc.sandbox("tags.attach", "-c", "tier", "fast", "/DC0/datastore/LocalDS_0")
    assert fits() == ["LocalDS_0"]
    assert "there is no tag" in govc_fails(
        govc, "storage.policy.create", "-category", "tier", "-tag", "slow", "other"
    )
    govc.sandbox("storage.policy.rm", "bf-k8s")


def govc_fails(govc: Both, *words: str) -> str:
    """What the sandbox says."""
    with pytest.raises(AssertionError) as failed:
        govc.sandbox(*words)
    return str(failed.value)


def test_a_machines_events_are_alike(govc: Both) -> None:
    for ask in (govc.sandbox, govc.peer):
        ask(
            "vm.create",
            "-on=false",
            "-c",
            "2",
            "-m",
            "1024",
            "-g",
            "otherGuest",
            "-net",
            "VM Network",
            "bf-05",
        )
        ask("vm.change", "-vm", "bf-05", "-m", "2048")
        ask("vm.power", "-on", "bf-05")
        ask("vm.power", "-off", "-force", "bf-05")
    assert govc.same("events", "-l", "/DC0/vm/bf-05", plain=happened) == [
        "VmReconfiguredEvent",
        "VmPoweredOnEvent",
        "VmPoweredOffEvent",
    ]
