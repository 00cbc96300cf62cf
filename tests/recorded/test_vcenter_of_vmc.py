"""bfinfra on a real vCenter 8.0.1, as saved by govc and served by vcsim: doctor, plan, drift, and what its
readers make of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import select
import ssl
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import yaml
from lxml import etree
from recorded.conftest import Held
from recorded.sources import stored

import bfinfra
from bfinfra.app import init
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.finding import Health
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

SOURCE = "vCenter 8.0.1 (VMC), by vcsim -load"
BIN = Path(os.environ.get("BFINFRA_PEERS_BIN") or Path.home() / ".cache/bfinfra-peers/bin")
USER = "administrator@vsphere.local"
HOST, CLUSTER = "10.2.32.4", "Cluster-1"
BOARD = {"vendor": "0x1d0f", "device": "0xbec2"}  # 50 of these, none of which can be passed through


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that govc saved; of the managers that were left out, the names alone, without which vcsim
    doesn't start.
    """
    folder = tmp_path_factory.mktemp("saved")
    with tarfile.open(stored("vcenter-8.0.1-vmc.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    root = next(folder.iterdir())
    there = {re.search(r"<obj [^>]*>([^<]+)<", path.read_text())[1] for path in root.glob("*.xml")}
    services = re.findall(r'<\w+ type="(\w+)">([^<]+)</', next(root.glob("0000-*")).read_text())
    for number, (kind, moid) in enumerate(sorted(set(services))):
        if moid not in there:
            text = f'<ObjectContent>\n  <obj type="{kind}">{escape(moid)}</obj>\n</ObjectContent>\n'
            (root / f"9{number:03d}-{kind}-{moid}.xml").write_text(text)
    return root


@pytest.fixture(scope="module")
def server(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a vcsim of this module's own; it makes folders for datastores where it stands."""
    vcsim = BIN / "vcsim"
    if not vcsim.exists():
        pytest.fail(f"there is no {vcsim}; build it with: script/peers build", pytrace=False)
    command = [
        str(vcsim),
        "-load",
        str(saved),
        "-l",
        "127.0.0.1:0",
        "-api-version",
        "8.0.1.0",
        "-username",
        "administrator",
        "-password",
        "recorded",
    ]
    with subprocess.Popen(
        command,
        cwd=tmp_path_factory.mktemp("stores"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert select.select([running.stdout], [], [], 30)[0], "vcsim says nothing"
        line = running.stdout.readline()
        found = re.search(r"^URL=https://(?:[^@]*@)?([\d.]+:\d+)", line)
        assert found, line + running.stdout.read()
        try:
            yield found[1]
        finally:
            running.terminate()


@pytest.fixture
def site(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes and loads a site on it, of these resources."""
    monkeypatch.setenv("PW", "recorded")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host, _, port = server.partition(":")
    pem = ssl.get_server_certificate((host, int(port)))
    vcenter = {
        "server": server,
        "datacenter": "SDDC-Datacenter",
        "username": USER,
        "password": {"env": "PW"},
        "trust": {"sha256": hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()},
    }

    def load(**kinds: Any) -> Any:
        path = tmp_path / "site.yaml"
        path.write_text(yaml.safe_dump({"site": "vmc", "vcenter": vcenter, **kinds}))
        return bfinfra.load(path)

    return load


def of_host(saved: Path, name: str) -> list[Any]:
    """The elements of a property of the recorded host."""
    root = etree.parse(next(saved.glob("*-HostSystem-host-*.xml"))).getroot()
    found = next(
        each for each in root.iterfind("{*}propSet") if each.findtext("{*}name") == name.partition(".")[0]
    )
    return list(found.find("{*}val").iterfind("/".join("{*}" + part for part in name.split(".")[1:])))


def test_doctor_finds_it_well(site: Any, held: Held) -> None:
    found = bfinfra.diagnose(site(gpu_host={HOST: {"cluster": CLUSTER, "passthrough": [BOARD]}}))
    held(
        f"{SOURCE}: doctor",
        [f"{each.check}: {each.what}" for each in found if each.health is not Health.GOOD],
        len(found),
    )


def test_a_plan_is_made_and_says_what_is_there_already(site: Any, held: Held) -> None:
    given = site(
        gpu_host={HOST: {"cluster": CLUSTER}},
        distributed_switch={"vmc-hostswitch": {}},
        port_group={"mine": {"switch": "vmc-hostswitch", "vlan": 7}},
    )
    plan = bfinfra.plan(given)
    wrong = (
        []
        if [each.what for each in plan.problems]
        == ["distributed_switch/vmc-hostswitch: it exists already, and bfinfra did not make it"]
        else [str(plan.problems)]
    )
    held(f"{SOURCE}: plan", wrong, 1)


def test_a_plan_for_what_is_not_there_yet_has_no_problem(site: Any, held: Held) -> None:
    plan = bfinfra.plan(
        site(
            gpu_host={HOST: {"cluster": CLUSTER}},
            distributed_switch={"pods": {"hosts": {HOST: ["vmnic7"]}}},
            port_group={"workload": {"switch": "pods"}},
        )
    )
    held(f"{SOURCE}: plan", [str(each) for each in plan.problems], 1)
    assert len(plan.pending) == 3


def test_drift_reports_only_facts(site: Any, held: Held) -> None:
    report = bfinfra.drift(site(gpu_host={HOST: {"cluster": CLUSTER}}))
    held(f"{SOURCE}: drift", [str(each) for each in report.problems], 1)


def test_a_refusal_on_a_real_host_is_one_line(site: Any, held: Held) -> None:
    (problem,) = bfinfra.plan(site(gpu_host={HOST: {"cluster": CLUSTER, "passthrough": [BOARD]}})).problems
    wrong = (
        []
        if problem.why.count("0000:") == 4 and "and 46 more are not capable of passthrough" in problem.why
        else [problem.why]
    )
    held(f"{SOURCE}: refusals", wrong, 1)


def test_it_is_described_and_to_adopt_it_changes_no_field(site: Any, tmp_path: Path, held: Held) -> None:
    vcenter = site().vcenter
    settings = vcenter.model_dump(mode="json", exclude_defaults=True)
    found = init.described(init.empty("mine", settings, tmp_path), settings)
    path = tmp_path / "described.yaml"
    path.write_text(found.text)
    described = bfinfra.load(path)
    kinds = {key.kind for key in described.resources}
    assert {"distributed_switch", "port_group", "resource_pool", "virtual_machine"} <= kinds, found.text
    plan = bfinfra.plan(described, adopt=frozenset(described.resources))
    wrong = [str(each) for each in plan.problems]
    wrong += [
        f"{item.key}: {change.field}"
        for item in plan.items
        for change in item.changes
        if change.field != UNFINISHED
    ]
    held(f"{SOURCE}: init and adopt", wrong, len(described.resources))


@pytest.fixture
def vcenter(server: str) -> Iterator[VCenter]:
    host, _, port = server.partition(":")
    trust = Trust(ca_pem=ssl.get_server_certificate((host, int(port))))
    opened = VCenter(
        VCenterSettings(server=server, trust=trust),
        Transport(),
        {"GOVC_USERNAME": USER, "GOVC_PASSWORD": "recorded"},
    )
    with contextlib.closing(opened):
        yield opened


def test_every_pci_device_of_the_host_is_read(vcenter: VCenter, saved: Path, held: Held) -> None:
    """259, of which no graphics device; what each can do stands in another property, of every device and not
    of capable ones only.
    """
    moid = etree.parse(next(saved.glob("*-HostSystem-host-*.xml"))).getroot().findtext("{*}obj")
    (host,) = vcenter.hosts.read([moid], "bfinfra.mark")
    there = {
        each.findtext("{*}id"): int(each.findtext("{*}vendorId")) & 0xFFFF
        for each in of_host(saved, "hardware.pciDevice")
    }
    capable = {
        each.findtext("{*}id")
        for each in of_host(saved, "config.pciPassthruInfo")
        if each.findtext("{*}passthruCapable") == "true"
    }
    found = {each.address: each.vendor for each in host.devices}
    wrong = sorted(
        address for address in there.keys() | found.keys() if there.get(address) != found.get(address)
    )
    wrong += sorted({each.address for each in host.devices if each.capable} ^ capable)
    assert (len(there), host.cluster != "", [each for each in host.devices if each.display]) == (
        259,
        True,
        [],
    )
    held(f"{SOURCE}: PCI devices", wrong, len(there))


def test_switches_and_port_groups_are_read(vcenter: VCenter, saved: Path, held: Held) -> None:
    """The switch names its uplinks and each host's NICs; the group of uplinks is known from the others."""
    there = vcenter.switches.read(context=True)
    (switch,) = there.switches
    root = etree.parse(next(saved.glob("*-VmwareDistributedVirtualSwitch-*.xml"))).getroot()
    nics = [each.text for each in root.iterfind(".//{*}backing/{*}pnicSpec/{*}pnicDevice")]
    wrong = (
        []
        if sorted(itertools.chain(*switch.hosts.values())) == sorted(set(nics))
        else [f"{switch.hosts} and {nics}"]
    )
    wrong += (
        []
        if list(switch.uplinks)
        == [each.text for each in root.iterfind(".//{*}uplinkPortPolicy/{*}uplinkPortName")]
        else [str(switch.uplinks)]
    )
    groups = {
        etree.parse(path).getroot().findtext("{*}obj")
        for path in saved.glob("*-DistributedVirtualPortgroup-*.xml")
    }
    wrong += sorted(groups ^ {each.moid for each in there.groups})
    uplinks = [each.name for each in there.groups if each.uplink]
    wrong += [] if uplinks == ["vmc-hostswitch-DVUplinks-8"] else [str(uplinks)]
    held(f"{SOURCE}: switches and port groups", wrong, 1 + len(groups))


def test_machines_are_read(vcenter: VCenter, saved: Path, held: Held) -> None:
    """All run, and every one lists Destroy_Task among what can't be done now."""
    machines = [etree.parse(path).getroot() for path in saved.glob("*-VirtualMachine-vm-*.xml")]
    found = {
        each.moid: each for each in vcenter.machines.read([root.findtext("{*}obj") for root in machines], [])
    }
    wrong = []
    for root in machines:
        each = found[root.findtext("{*}obj")]
        config = next(
            part.find("{*}val")
            for part in root.iterfind("{*}propSet")
            if part.findtext("{*}name") == "config"
        )
        disks = [
            part
            for part in config.iterfind("{*}hardware/{*}device")
            if part.find("{*}capacityInBytes") is not None
        ]
        expected = (
            int(config.findtext("{*}hardware/{*}numCPU")),
            int(config.findtext("{*}hardware/{*}memoryMB")) << 20,
            len(disks),
            True,
        )
        wrong += (
            []
            if (each.cpus, each.memory, len(each.disks), each.on) == expected
            else [f"{each.name}: {expected}"]
        )
        methods = [part.text for part in root.iterfind("{*}propSet[{*}name='disabledMethod']/{*}val/*")]
        wrong += [] if "Destroy_Task" in methods else [f"{each.name}: {methods}"]
    held(f"{SOURCE}: machines", wrong, len(machines))
