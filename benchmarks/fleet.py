"""A site of many Bitfusion servers, and the same as vcsim's `-fleet` file: what stands there is what the site
says.

    python benchmarks/fleet.py SERVERS FOLDER    writes fleet.json and site/ (its files, an OVA, two
    passwords) into FOLDER

One GPU a server, eight servers a host, fifty hosts a cluster. The vCenter's address and pin are put in by who
starts it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bfinfra
from bfinfra.backends import ova
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.bitfusion_server import gpus, properties, state
from bfinfra.kinds.vcenter.gpu_host.state import ATTRIBUTE, GpuHostNote
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret, digest
from bfinfra.model.site import Site
from bfinfra.sandbox.factories.ova import make_ova

GPUS_A_HOST, HOSTS_A_CLUSTER = 8, 50
GPU_MEMORY = 32 << 30
HEAD = """site: fleet
vcenter:
  server: vcsim.invalid
  username: administrator@vsphere.local
  password: {file: vcsim.password}
  trust: {sha256: "0000000000000000000000000000000000000000000000000000000000000000"}
"""
HOST = "  {host}: {{cluster: {cluster}, passthrough: [{{vendor: 0x10de, device: 0x1db6, count: 8}}]}}\n"
SERVER = """  {name}:
    ova: {{file: bitfusion-server.ova}}
    host: {host}
    gpus: 1
    cpus: 2
    datastore: LocalDS_0
    networks: {{Network 1: {{network: VM Network, address: {ip}/8, gateway: 10.255.255.254}}}}
    properties:
      hostname: {name}.example.local
      customer_password: {{file: customer.password}}
      vcenter_url: https://vcsim.example.local
      vcenter_guid: 4f2c3c0e-6a53-4a0f-9f57-9d3f0c1c2a61
      vcenter_username: administrator@vsphere.local
      vcenter_password: {{file: vcsim.password}}
      vcenter_thumbprint: "7E:9A:0D:3C:55:21:8F:BE:42:6A:11:C0:9D:77:E3:58:24:B6:0F:1A"
"""


def host_of(server: int) -> tuple[str, str]:
    """The names of a server's host and cluster."""
    cluster, host = divmod(server // GPUS_A_HOST, HOSTS_A_CLUSTER)
    return f"DC0_C{cluster}_H{host}", f"DC0_C{cluster}"


def shape(servers: int) -> tuple[int, int]:
    """How many clusters vcsim must have, and how many hosts in each."""
    hosts = -(-servers // GPUS_A_HOST)
    return -(-hosts // HOSTS_A_CLUSTER), min(hosts, HOSTS_A_CLUSTER)


def vcsim_words(servers: int) -> list[str]:
    """What vcsim is started with, so that it has these clusters and hosts, and no machines yet."""
    clusters, hosts = shape(servers)
    counts = {"-cluster": clusters, "-host": hosts, "-standalone-host": 0, "-vm": 0, "-gpus": GPUS_A_HOST}
    return [*(word for flag, count in counts.items() for word in (flag, str(count))), "-passthru"]


def site_files(servers: int) -> dict[str, str]:
    """The site's files by name: one for each cluster, as a file of a site must not be larger than 4 MiB."""
    hosts: dict[str, dict[str, None]] = {}
    written: dict[str, list[str]] = {}
    for n in range(servers):
        host, cluster = host_of(n)
        hosts.setdefault(cluster, {})[host] = None
        ip = f"10.{n + 1 >> 16 & 255}.{n + 1 >> 8 & 255}.{n + 1 & 255}"
        written.setdefault(cluster, []).append(SERVER.format(name=f"bf-{n:05d}", host=host, ip=ip))
    clusters = {
        f"{cluster}.yaml": "".join(
            [
                "gpu_host:\n",
                *(HOST.format(host=h, cluster=cluster) for h in hosts[cluster]),
                "bitfusion_server:\n",
                *written[cluster],
            ]
        )
        for cluster in hosts
    }
    return {"site.yaml": HEAD, **clusters}


def world(site: Site, package: ova.Ova) -> dict[str, Any]:
    """What vcsim builds."""
    notes = {
        key.name: GpuHostNote(Mark(site.name, str(key)).committed(spec.applied())).encode()
        for key, spec in site.resources.items()
        if key.kind == "gpu_host"
    }
    return {"Attribute": ATTRIBUTE, "Notes": notes, "Machines": list(_machines(site, package))}


def _machines(site: Site, package: ova.Ova) -> Iterator[dict[str, Any]]:
    taken: dict[str, int] = {}
    for key, spec in site.resources.items():
        if key.kind == "bitfusion_server":
            slot = taken[spec.host] = taken.get(spec.host, -1) + 1
            yield _machine(site, key, spec, package) | {"Cards": [f"0000:{0x17 + 0x11 * slot:02x}:00.0"]}


def _machine(site: Site, key: Key, spec: Any, package: ova.Ova) -> dict[str, Any]:
    mark = Mark(site.name, str(key))
    values = properties.checked(key.name, spec, package, state.BitfusionServerFacts(), None)
    digests = {name: digest(value.reveal()) for name, value in values.items() if isinstance(value, Secret)}
    return {
        "Name": key.name,
        "Host": spec.host,
        "UUID": identity(site.name, str(key)),
        "Network": "VM Network",
        "IP": spec.networks["Network 1"].address.partition("/")[0],
        "CPUs": 2,  # as many as vcsim's hosts have
        "MemoryMB": gpus.memory_for(GPU_MEMORY) >> 20,
        "DisksGB": [disk.capacity >> 30 for disk in package.disks],
        "Extra": {
            state.MARK: mark.committed(spec.applied()).encode(),
            state.SECRETS: mark.committed(digests).encode(),
            state.OVA: state.release(package),
            state.MMIO: "TRUE",
            state.MMIO_SIZE: str(gpus.mmio_for(GPU_MEMORY) >> 30),
        },
        "Properties": {name: "" if isinstance(value, Secret) else value for name, value in values.items()},
    }


def main(servers: int, folder: Path) -> None:
    site = folder / "site"
    site.mkdir(parents=True, exist_ok=True)
    make_ova(site / "bitfusion-server.ova", disk=1 << 16)
    (site / "vcsim.password").write_text("of-the-benchmark-1!")
    (site / "customer.password").write_text("of-the-customer-1!")
    for name, text in site_files(servers).items():
        (site / name).write_text(text)
    (folder / "fleet.json").write_text(
        json.dumps(world(bfinfra.load(site), ova.read(site / "bitfusion-server.ova")))
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
