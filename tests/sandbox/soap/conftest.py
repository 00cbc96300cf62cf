"""A vCenter of its own for each test: the SOAP and upload handlers behind loopback TLS, and pyVmomi as shipped
as the client.
"""

from __future__ import annotations

import ssl
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyVim.connect import Disconnect, SmartConnect
from pyVim.task import WaitForTask
from pyVmomi import vim

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.factories.ova import make_ova
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.handler import Request, Response
from bfinfra.sandbox.inventory import BuiltInventory
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.sessions import Sessions
from bfinfra.sandbox.soap import esx_handler, soap_handler
from bfinfra.sandbox.tally import Tally
from bfinfra.sandbox.world_file import parse

V100 = {
    "vendor": 0x10DE,
    "device": 0x1DB6,
    "name": "GV100GL [Tesla V100 PCIe 32GB]",
    "class": 0x0302,
    "memory": "32GiB",
}
WORLD: dict[str, Any] = {
    "pace": 0,
    "datacenter": "Singapore",
    "vcenter": {"host": "vcsa.aiml.local"},
    "networks": ["VM Network", "rdma"],
    "users": [
        {"name": "administrator@aiml.local", "password": "VMware1!", "role": "admin"},
        {"name": "viewer@aiml.local", "password": "look", "role": "readonly"},
        {"name": "operator@aiml.local", "password": "some", "role": ["VirtualMachine.Interact.PowerOn"]},
    ],
    "clusters": {
        "gpu-farm": {
            "hosts": {
                "esx209-161.aiml.local": {
                    "memory": "768GiB",
                    "pci": [{"id": "0000:3b:00.0", **V100}, {"id": "0000:af:00.0", **V100}],
                }
            }
        },
        "compute": {"hosts": {f"esx209-16{n}.aiml.local": {} for n in (2, 3, 4)}},
    },
    "datastores": {
        "gpu-local": {"capacity": "4TiB", "clusters": ["gpu-farm"]},
        "vsan": {"capacity": "20TiB"},
    },
}


@dataclass
class Site:
    """A running vCenter and what is behind it."""

    port: int
    inventory: BuiltInventory
    sessions: Sessions
    faults: Faults
    tally: Tally
    clock: Clock
    trust: ssl.SSLContext
    clients: list[Any] = field(default_factory=list)

    def login(self, user: str = "administrator@aiml.local", password: str = "VMware1!") -> Client:
        """A pyVmomi session."""
        si = SmartConnect(
            host="127.0.0.1",
            port=self.port,
            user=user,
            pwd=password,
            sslContext=self.trust,
            httpConnectionTimeout=60,
        )
        self.clients.append(si)
        return Client(si)


class Client:
    """pyVmomi with short ways to what the tests look at."""

    def __init__(self, si: Any) -> None:
        self.si, self.content = si, si.RetrieveContent()

    def find(self, path: str) -> Any:
        """The entity of an inventory path."""
        return self.content.searchIndex.FindByInventoryPath(path)

    @property
    def host(self) -> Any:
        """The GPU host."""
        return self.find("Singapore/host/gpu-farm/esx209-161.aiml.local")

    def vm(
        self, name: str = "vm-a", *, cluster: str = "gpu-farm", store: str = "gpu-local", **spec: Any
    ) -> Any:
        """A new machine."""
        config = vim.vm.ConfigSpec(name=name, files=vim.vm.FileInfo(vmPathName=f"[{store}]"), **spec)
        pool = self.find(f"Singapore/host/{cluster}").resourcePool
        return self.run(self.find("Singapore/vm").CreateVM_Task(config, pool))

    @staticmethod
    def run(task: Any) -> Any:
        """The task's result; its fault raised."""
        WaitForTask(task)
        return task.info.result

    def pass_through(self, *addresses: str) -> None:
        """Pass the GPU host's devices through, with the reboot that it takes."""
        host = self.host
        host.configManager.pciPassthruSystem.UpdatePassthruConfig(
            [vim.host.PciPassthruConfig(id=each, passthruEnabled=True) for each in addresses]
        )
        self.run(host.EnterMaintenanceMode_Task(10))
        self.run(host.RebootHost_Task(force=False))
        self.until(lambda: host.runtime.connectionState == "connected")
        self.run(host.ExitMaintenanceMode_Task(10))

    @staticmethod
    def until(true: Callable[[], bool]) -> None:
        """Ask until it is so; each question is a call that lets the server run on."""
        for _ in range(5000):
            if true():
                return
        raise AssertionError("it never became so")


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def make_site(pki: Pki) -> Iterator[Callable[..., Site]]:
    """Start a vCenter on a changed world."""
    opened: list[tuple[Listeners, Site]] = []

    def make(**changes: Any) -> Site:
        world = parse({**WORLD, **changes}, Passwords(b"seed"))
        clock, faults, tally = Clock(world.pace), Faults(), Tally()
        inventory, sessions = BuiltInventory(world, clock), Sessions(world.users, clock)
        soap, upload = soap_handler(inventory, sessions, faults, tally, clock), esx_handler(inventory)

        def both(request: Request) -> Response:
            return (upload if request.path.startswith("/nfc/") else soap)(request)

        listeners = Listeners(pki, faults, tally)
        port = listeners.open("vcsa.aiml.local:443", both, "")
        site = Site(
            port,
            inventory,
            sessions,
            faults,
            tally,
            clock,
            ssl.create_default_context(cafile=str(pki.ca_file)),
        )
        opened.append((listeners, site))
        return site

    yield make
    for listeners, site in opened:
        for si in site.clients:
            Disconnect(si)
        listeners.close_all()
        site.clock.forget()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site()


@pytest.fixture
def client(site: Site) -> Client:
    return site.login()


@pytest.fixture(scope="session")
def ova(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ova") / "bitfusion-server-3.0.0-11.ova"
    make_ova(path)
    return path


@pytest.fixture(scope="session")
def members(ova: Path) -> dict[str, bytes]:
    """The OVA's files by name."""
    with tarfile.open(ova) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar}


@pytest.fixture(scope="session")
def ovf(members: dict[str, bytes]) -> str:
    """The OVA's descriptor."""
    return next(data.decode() for name, data in members.items() if name.endswith(".ovf"))
