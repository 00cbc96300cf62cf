"""A site of more than 20 resources in a vCenter of other people's, from `init` to `destroy`, typed as a user types:
everything that isn't the site's is as before, compared whole.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from peers import untidy
from peers.conftest import own_vcsim
from peers.found import USER, Peers
from peers.own_vcsim import session
from peers.whole_inventory import Whole, whole

import bfinfra.kinds as registry

SHA = re.compile(r"\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b")
KINDS = {
    "gpu_host": ("DC0_C0_H0", "DC0_C0_H1"),
    "host_option": ("log",),
    "resource_pool": ("gpu", "bitfusion", "training", "inference", "batch"),
    "distributed_switch": ("roce", "storage"),
    "port_group": ("high-speed", "vlan-20", "backup"),
    "virtual_machine": ("db", "web", "worker-1", "worker-2", "legacy"),
    "bitfusion_vm": ("worker-1", "worker-2"),
    "bitfusion_server": ("bf-01", "bf-02"),
}
"""The site's resources: of each kind that vcsim can hold."""
LACKING = {
    "cluster_option": "it keeps no option of DRS",
    "content_library": "it has no /api/vcenter/datastore",
    "host_firewall_rule": "no property shows what calls of its firewall change",
    "host_graphics": "its hosts keep no settings of graphics",
    "host_image": "it has no Lifecycle Manager",
    "storage_policy": "it has the older of two APIs for tags",
    "vm_class": "it has no supervisor",
    "vmkernel_adapter": "its hosts add none",
}
"""The kinds that it can't, and why."""
APPLY = "apply --yes --allow-disruption all"
BY_HAND = ("resource_pool/batch", "virtual_machine/legacy")
"""What somebody made by hand, for the site to adopt."""


@dataclass
class User:
    """Whoever types commands in a folder, with an empty HOME. `said`: each command, its end and what it printed."""

    peers: Peers
    folder: Path
    said: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder.parent / "home"),
            "PATH": os.environ["PATH"],
            "VCENTER_PASSWORD": self.peers.password,
            "NO_COLOR": "1",
            "COLUMNS": "400",
        }

    def types(self, line: str, *, code: int = 0) -> str:
        """What `bfinfra LINE` prints; AssertionError unless it ends with this code."""
        done = subprocess.run(
            [sys.executable, "-m", "bfinfra", *line.split()],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        printed = done.stdout + done.stderr
        self.said.append((f"bfinfra {line}", done.returncode, printed.strip("\n")))
        assert done.returncode == code, f"$ bfinfra {line}\nended with {done.returncode}\n{printed}"
        return printed

    def is_killed(self, line: str, after: str) -> None:
        """Starts it, and kills it once it has printed this."""
        command = [sys.executable, "-m", "bfinfra", *line.split()]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for printed in process.stdout:
                if after in printed:
                    break
            else:
                raise AssertionError(f"it never printed {after}")
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL

    def writes(self, text: str) -> None:
        (self.folder / "site.yaml").write_text(text)


@pytest.fixture
def user(peers: Peers, tmp_path: Path, ova: Path) -> Iterator[User]:
    folder = tmp_path / "ours"
    folder.mkdir()
    shutil.copy(ova, folder / "bitfusion-server.ova")
    with own_vcsim(peers) as vcsim:
        yield User(vcsim.peers, folder)


def compared(before: Whole, now: Whole, own: Collection[str] = (), but: Mapping[str, str] = {}) -> str:
    """AssertionError where an object that was there is another now; otherwise how much was compared. `own`: those
    that the site may change; `but`: how the paths of properties begin that it may change, with the reason. An object that is
    new may be named by those that were there.
    """
    theirs = {ref: each for ref, each in before.objects.items() if ref not in own}
    assert theirs.keys() <= now.objects.keys(), sorted(theirs.keys() - now.objects.keys())
    added, count, wrong = now.objects.keys() - before.objects.keys(), 0, {}
    for ref, old in theirs.items():
        new = now.objects[ref]
        for path in {*old, *new}:
            named = path.rpartition("/")[2]
            if path.startswith(tuple(but)) or named in own or (path not in old and named in added):
                continue
            count += 1
            if old.get(path) != new.get(path):
                wrong[f"{before.named(ref)} {path}"] = (old.get(path), new.get(path))
    assert not wrong, "\n".join(f"{at}: {ways}" for at, ways in sorted(wrong.items()))
    return f"{len(theirs)} objects and {count} properties of others are as before"


WHILE = {
    "field": "attributes are defined for all of vCenter",
    "availableField": "the same, as each object lists them",
    "info/freeSpace": "of the datastore that it uses",
    "summary/freeSpace": "of the datastore that it uses",
}
"""What differs of others while the site stands."""


AFTER = {"runtime/bootTime": "the site restarts its hosts", "summary/runtime[0]/bootTime": "the same"}
"""What differs once it is gone."""


def own(now: Whole) -> set[str]:
    """What was there and the site says something of: its hosts with their parts, and what it adopted."""
    names = {*KINDS["gpu_host"], "DC0_C0_H2", *(each.partition("/")[2] for each in BY_HAND)}
    found = {ref for ref, each in now.objects.items() if each.get("name") in names}
    parts = {
        path.rpartition("/")[2]
        for ref in found
        for path in now.objects[ref]
        if path.startswith("configManager/")
    }
    return found | parts


def site_of(settings: str) -> str:
    """The site, beside the settings that `init` wrote."""
    return f"""site: ours
{settings}
gpu_host:
  DC0_C0_H0: &gpus
    passthrough: [{{vendor: 0x10de, device: 0x1db6, count: 2}}]
    reboot: if_needed
    reboot_in_use: true
  DC0_C0_H1: *gpus
host_option:
  log: {{key: Config.HostAgent.log.level, value: verbose, hosts: [DC0_C0_H2]}}
resource_pool:
  gpu: {{cluster: /DC0/host/DC0_C0, memory: {{limit: 640GiB}}}}
  bitfusion: {{cluster: /DC0/host/DC0_C0, parent: gpu, cpu: {{shares: high}}}}
  training: {{cluster: /DC0/host/DC0_C0, memory: {{limit: 64GiB}}}}
  inference: {{cluster: /DC0/host/DC0_C0, parent: training}}
  batch: {{cluster: /DC0/host/DC0_C0, memory: {{limit: 4GiB}}}}
distributed_switch:
  roce: {{mtu: 9000}}
  storage: {{}}
port_group:
  high-speed: {{switch: roce, vlan: 31}}
  vlan-20: {{switch: roce, vlan: 20}}
  backup: {{switch: storage}}
virtual_machine:
  db: &machine
    template: /DC0/vm/ours/centos-7.6
    cluster: /DC0/host/DC0_C0
    datastore: LocalDS_0
    folder: ours
    cpus: 1
    memory: 1GiB
    power: "off"
    adapters: [{{network: /DC0/network/VM Network}}]
  web: *machine
  worker-1: &worker
    template: /DC0/vm/ours/centos-7.6
    cluster: /DC0/host/DC0_C0
    host: DC0_C0_H2
    datastore: LocalDS_0
    folder: ours
    cpus: 2
    memory: 2GiB
    adapters: [{{network: /DC0/network/DVS0/DC0_DVPG0}}]
  worker-2: *worker
  legacy:
    template: /DC0/vm/ours/centos-7.6
    cluster: /DC0/host/DC0_C0
    datastore: LocalDS_0
    folder: teamB
    cpus: 1
    memory: 1GiB
    power: "off"
    adapters: [{{network: /DC0/network/VM Network}}]
bitfusion_vm:
  worker-1: {{vm: worker-1, settings: {{example.bitfusion.client: "true"}}}}
  worker-2: {{vm: worker-2, settings: {{example.bitfusion.client: "true"}}}}
bitfusion_server:
  bf-01: &server
    ova: {{file: bitfusion-server.ova}}
    host: DC0_C0_H0
    gpus: 2
    cpus: 2
    memory: 32GiB
    datastore: LocalDS_0
    folder: ours
    resource_pool: bitfusion
    networks: {{Network 1: {{network: /DC0/network/VM Network, address: 10.9.0.5/24, gateway: 10.9.0.1}}}}
    properties:
      hostname: bf-01.example.local
      customer_password: {{env: VCENTER_PASSWORD}}
      vcenter_username: {USER}
      vcenter_password: {{env: VCENTER_PASSWORD}}
  bf-02:
    ova: {{file: bitfusion-server.ova}}
    host: DC0_C0_H1
    gpus: 2
    cpus: 2
    memory: 32GiB
    datastore: LocalDS_0
    folder: ours
    networks: {{Network 1: {{network: /DC0/network/VM Network, address: 10.9.0.6/24, gateway: 10.9.0.1}}}}
    properties:
      hostname: bf-02.example.local
      customer_password: {{env: VCENTER_PASSWORD}}
      vcenter_username: {USER}
      vcenter_password: {{env: VCENTER_PASSWORD}}
"""


def made_by_hand(user: User) -> None:
    """What somebody of the site has made with govc."""
    user.peers.govc("pool.create", "-mem.limit", "4096", "/DC0/host/DC0_C0/Resources/batch")
    places = (
        "-pool",
        "/DC0/host/DC0_C0/Resources",
        "-folder",
        "/DC0/vm/teamB",
        "-ds",
        "/DC0/datastore/LocalDS_0",
    )
    size = ("-c", "2", "-m", "1024", "-net", "/DC0/network/VM Network", "-on=false")
    user.peers.govc("vm.create", "-dc", "DC0", *places, *size, "legacy")


GUESTS = {"bf-01": "10.9.0.5", "bf-02": "10.9.0.6", "worker-1": "10.9.0.7", "worker-2": "10.9.0.8"}


def guests_start(user: User) -> None:
    """vcsim has no guests: what VMware Tools would report is set from outside."""
    for name, address in GUESTS.items():
        guest = {"toolsRunningStatus": "guestToolsRunning", "ipAddress": address, "hostName": name}
        words = (word for key, value in guest.items() for word in ("-e", f"SET.guest.{key}={value}"))
        user.peers.govc("vm.change", "-vm", f"/DC0/vm/ours/{name}", *words)


def test_each_kind_of_vcenter_lives_here_or_vcsim_lacks_what_it_needs() -> None:
    assert {*KINDS, *LACKING} == {*registry.names("vcenter")}
    assert not KINDS.keys() & LACKING.keys()


def test_a_life_beside_others_from_init_to_destroy(user: User, tmp_path: Path) -> None:
    (disks := tmp_path / "disks").mkdir()
    with session(user.peers) as si:
        untidy.fill(
            si,
            disks,
            {kind: tuple(n for n in names if f"{kind}/{n}" not in BY_HAND) for kind, names in KINDS.items()},
        )
    made_by_hand(user)
    before = whole(user.peers)
    settings = described(user)
    assert compared(before, whole(user.peers))
    user.writes(site_of(settings))
    for phase in (created, changed, destroyed):
        print(phase.__name__, phase(user, before))  # noqa: T201 - how much was compared


def described(user: User) -> str:
    """What `init` writes of it, as far as it is settings."""
    here = user.peers.vcsim
    pin = SHA.search(user.types(f"trust {here}", code=1))
    assert pin
    user.types(f"init --from {here} --user {USER} --trust {pin[0]} --site ours --datacenter DC0")
    text = (user.folder / "site.yaml").read_text()
    assert "abroad" not in text
    assert "alone" not in text
    found = yaml.safe_load(text)
    assert found["resource_pool"]
    user.types("validate")
    user.types("plan", code=1)
    return text.partition("\nvcenter:")[2].join(("vcenter:", "")).partition("\n\n")[0]


def created(user: User, before: Whole) -> str:
    """Planned, refused for what others made, adopted, killed amid an apply, applied."""
    user.types("validate")
    refused = user.types("plan", code=1)
    assert all(f"{each}: it exists already, and bfinfra did not make it" in refused for each in BY_HAND)
    unwell = re.findall(r"^✗ (.*)", user.types("doctor", code=1), re.MULTILINE)
    assert len(unwell) == 2, "vcsim's hosts have no addresses for uploads"
    assert all("takes uploads" in each for each in unwell)
    for each in BY_HAND:
        user.types(f"adopt site.yaml {each} --yes")
    user.types("plan")
    user.is_killed(APPLY, after="created")
    user.types(f"{APPLY} --deadline 3s", code=3)
    guests_start(user)
    user.types(APPLY)
    assert f"{sum(map(len, KINDS.values()))} up to date. Nothing to do." in user.types(
        "plan --detailed-exitcode"
    )
    user.types("drift")
    user.types("get")
    now = whole(user.peers)
    return compared(before, now, own(now), WHILE)


def changed(user: User, before: Whole) -> str:
    """By somebody's hand, and by the file."""
    user.peers.govc("vm.change", "-vm", "/DC0/vm/ours/db", "-m", "2048")
    user.peers.govc("pool.change", "-mem.limit", "1024", "/DC0/host/DC0_C0/Resources/training")
    moved = user.types("drift", code=2)
    assert {*re.findall(r"[a-z_]+/[\w-]+", moved)} >= {"virtual_machine/db", "resource_pool/training"}
    user.types("watch --once-settled", code=2)
    text = (user.folder / "site.yaml").read_text()
    user.writes(text.replace("vlan: 20", "vlan: 21").replace("cpus: 1", "cpus: 2"))
    user.types("plan")
    user.types(APPLY)
    user.types("plan --detailed-exitcode")
    user.types("drift")
    now = whole(user.peers)
    return compared(before, now, own(now), WHILE)


def destroyed(user: User, before: Whole) -> str:
    """All of it, and nothing else; killed amid it first."""
    user.types("plan --destroy")
    user.is_killed("destroy --yes", after="deleted")
    user.types("destroy --yes")
    adopted = {ref for ref, each in before.objects.items() if each.get("name") in ("batch", "legacy")}
    assert len(adopted) == len(BY_HAND)
    return compared(before, whole(user.peers), adopted, AFTER)
