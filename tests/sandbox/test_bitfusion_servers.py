"""A Bitfusion machine with GPUs answers on its port while it is on; other machines don't."""

from __future__ import annotations

import hashlib
import http.client
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Https, read
from pyVmomi import vim

from bfinfra.sandbox import SMALL_WORLD
from bfinfra.sandbox.bitfusion import BitfusionServers, Server
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.inventory import BuiltInventory
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally
from bfinfra.sandbox.world_file import load

ADDRESS = "10.2.0.5:56001"


class Farm:
    def __init__(self, folder: Path) -> None:
        self.pki = Pki(folder)
        self.listeners = Listeners(self.pki, Faults(), Tally())
        self.inventory = BuiltInventory(load(SMALL_WORLD, Passwords(b"seed")), Clock(0))
        self.servers = BitfusionServers(self.inventory, self.listeners)

    def machine(
        self,
        product: str = "VMware vSphere Bitfusion Server",
        gpu: str | None = "0000:3b:00.0",
        ip: str | None = "10.2.0.5",
    ) -> Any:
        host = self.inventory.hosts()[0]
        device = vim.vm.device.VirtualPCIPassthrough(
            key=13000,
            backing=vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
                id=gpu or "", deviceId="1eb8", systemId="", vendorId=0x10DE, deviceName="T4"
            ),
        )
        return self.inventory.add(
            vim.VirtualMachine,
            self.inventory.new_id("vm-", 1001),
            name="bf",
            runtime=vim.vm.RuntimeInfo(host=host.ref, powerState="poweredOn"),
            guest=vim.vm.GuestInfo(ipAddress=ip),
            config=vim.vm.ConfigInfo(
                instanceUuid="5000-uuid",
                vAppConfig=vim.vApp.VmConfigInfo(
                    product=[vim.vApp.ProductInfo(key=0, name=product, version="3.0.0")]
                ),
                hardware=vim.vm.VirtualHardware(device=[device] if gpu else []),
            ),
        )


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    found = Farm(tmp_path)
    yield found
    found.listeners.close_all()


def test_it_answers_claims_while_it_is_on(farm: Farm) -> None:
    vm = farm.machine()
    farm.inventory.powered(vm, on=True)
    assert farm.servers.running == {ADDRESS: Server("5000-uuid", "3.0.0-f95ba24a", (16160,))}
    client = Https("10.2.0.5", farm.listeners.ports()[ADDRESS], str(farm.pki.ca_file))
    client.request("GET", "/claim_id")
    assert read(client).data == b"5000-uuid"
    farm.inventory.powered(vm, on=False)
    assert (farm.servers.running, farm.listeners.ports()) == ({}, {})
    with pytest.raises((OSError, http.client.HTTPException, ssl.SSLError)):
        client.request("GET", "/claim_id")
        client.getresponse()
    client.close()


@pytest.mark.parametrize("what", [{"product": "Photon"}, {"ip": None}])
def test_a_machine_that_is_no_server_answers_nothing(what: dict[str, Any], farm: Farm) -> None:
    farm.inventory.powered(farm.machine(**what), on=True)
    assert farm.listeners.ports() == {}


def test_one_without_gpus_keeps_its_clusters_quorum(farm: Farm) -> None:
    farm.inventory.powered(farm.machine(gpu=None), on=True)
    assert [each.memory for each in farm.servers.running.values()] == [()]


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("vcenter_guid", "0" * 36),
        ("vcenter_url", "https://elsewhere.test"),
        ("vcenter_thumbprint", "AB:CD"),
        ("vcenter_guid", ""),
    ],
)
def test_a_server_with_a_wrong_vcenter_can_not_register_and_serves_nobody(
    key: str, wrong: str, farm: Farm
) -> None:
    vcenter = farm.inventory.world.vcenter
    farm.inventory.certificate = farm.pki.certificate
    der = ssl.PEM_cert_to_DER_cert(farm.pki.certificate(vcenter.host))
    right = {
        "vcenter_guid": vcenter.instance_uuid,
        "vcenter_url": f"https://{vcenter.host}",
        "vcenter_thumbprint": hashlib.sha256(der).hexdigest(),
    }
    for values, serves in ((right, True), ({**right, key: wrong}, False)):
        vm = farm.machine()
        vm["config"].vAppConfig.property = [
            vim.vApp.PropertyInfo(key=number, id=each, value=value)
            for number, (each, value) in enumerate(values.items())
        ]
        farm.inventory.powered(vm, on=True)
        assert bool(farm.servers.running) is serves
        farm.inventory.powered(vm, on=False)
