"""govc, a client that shares nothing with pyVmomi, uses the sandbox from the import of an OVA to its end."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.peers
PROPERTIES = {
    "hostname": "bf-01",
    "customer_password": "Secret-123",
    "vcenter_url": "https://vcsa.aiml.local",
    "vcenter_guid": "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a",
    "vcenter_username": "administrator@aiml.local",
    "vcenter_password": "VMware1!",
    "vcenter_thumbprint": "AB:CD",
    "network.ip_cidr.1": "172.24.210.80/24",
}


@pytest.fixture
def govc(site: Any, peers: Any) -> Any:
    """Run one command; its output. A failure shows govc's words."""
    settings = {
        "GOVC_URL": f"https://127.0.0.1:{site.port}/sdk",
        "GOVC_USERNAME": "administrator@aiml.local",
        "GOVC_PASSWORD": "VMware1!",
        "GOVC_INSECURE": "1",
        "GOVC_PERSIST_SESSION": "false",
        "HOME": os.environ["HOME"],
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(peers.bin / "govc"), *arguments],
            env=settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_govc_looks_around(govc: Any) -> None:
    assert "8.0.3.0" in govc("about")
    assert "/Singapore/vm" in govc("ls", "-i=false")
    assert "/Singapore/host/gpu-farm/esx209-161.aiml.local" in govc("find", "/", "-type", "h").splitlines()
    host = json.loads(govc("host.info", "-json", "esx209-161.aiml.local"))["hostSystems"][0]
    assert host["hardware"]["pciDevice"][0]["deviceId"] == 0x1DB6
    assert govc("object.collect", "-s", "/Singapore/host/gpu-farm", "name").strip() == "gpu-farm"
    assert "gpu-local" in govc("datastore.info")
    assert "Mem Limit" in govc("pool.info", "*/Resources")


def test_govc_imports_runs_changes_and_destroys_a_machine(govc: Any, ova: Path, tmp_path: Path) -> None:
    options = tmp_path / "options.json"
    options.write_text(
        json.dumps(
            {
                "DiskProvisioning": "thin",
                "PropertyMapping": [{"Key": key, "Value": value} for key, value in PROPERTIES.items()],
                "NetworkMapping": [
                    {"Name": f"Network {number}", "Network": "VM Network"} for number in range(1, 5)
                ],
                "PowerOn": True,
                "WaitForIP": True,
            }
        )
    )
    printed = govc(
        "import.ova",
        "-m",
        "-options",
        str(options),
        "-name",
        "bf-01",
        "-host",
        "esx209-161.aiml.local",
        "-ds",
        "gpu-local",
        str(ova),
    )
    assert "172.24.210.80" in printed
    govc("vm.change", "-vm", "bf-01", "-e", "bfinfra.mark=m")
    vm = json.loads(govc("vm.info", "-json", "-e", "bf-01"))["virtualMachines"][0]
    assert {"key": "bfinfra.mark", "value": "m"} in [
        {name: each[name] for name in ("key", "value")} for each in vm["config"]["extraConfig"]
    ]
    assert vm["runtime"]["powerState"] == "poweredOn"
    assert (
        len([line for line in govc("device.ls", "-vm", "bf-01").splitlines() if line.startswith("disk-")])
        == 2
    )
    assert "powered on" in govc("events", "-n", "20")
    govc("vm.power", "-off", "-force", "bf-01")
    govc("vm.destroy", "bf-01")
    assert "bf-01" not in govc("find", "/", "-type", "m")


def test_govc_makes_folders_pools_and_attributes(govc: Any) -> None:
    govc("folder.create", "vm/f")
    govc("pool.create", "compute/Resources/p")
    govc(
        "vm.create",
        "-on=false",
        "-ds",
        "vsan",
        "-pool",
        "compute/Resources/p",
        "-folder",
        "vm/f",
        "-net",
        "rdma",
        "t1",
    )
    assert "/Singapore/vm/f/t1" in govc("find", "/", "-type", "m")
    govc("pool.destroy", "compute/Resources/p")
    govc("fields.add", "owner")
    govc("fields.set", "owner", "me", "/Singapore/vm/f/t1")
    assert "me" in govc("fields.info", "/Singapore/vm/f/t1")
    govc("host.maintenance.enter", "esx209-162.aiml.local")
    govc("host.maintenance.exit", "esx209-162.aiml.local")
    govc("datastore.mkdir", "-ds", "vsan", "iso")
    assert "iso" in govc("datastore.ls", "-ds", "vsan")
    govc("object.destroy", "vm/f")
    assert govc("find", "/", "-type", "m").strip() == ""
