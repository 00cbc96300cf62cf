"""A world file while it is built: each part adds what it finds in the site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bfinfra.model.refs import Edge, Key, edges
from bfinfra.model.site import Site

Entry = dict[str, Any]
"""Values of a world file by their keys."""
STORE = "datastore1"


class Hex(int):
    """A number that is written as PCI ids are."""


GPU = {
    "vendor": Hex(0x10DE),
    "device": Hex(0x1DB6),
    "name": "GV100GL [Tesla V100 PCIe 32GB]",
    "memory": "32GiB",
}
HOST = {"cores": 128, "memory": "2TiB"}
"""Of every host: room for whatever the site puts on it."""


class Draft:
    """`left_out`: what the sandbox can't provide, and why."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.left_out: dict[str, str] = {}
        self.env: Entry = {}
        self.groups: dict[str, None] = {}
        self.users: dict[str, Entry] = {}
        self.hosts: dict[str, Entry] = {}
        self.clusters: dict[str, Entry] = {}
        self.datastores: dict[str, None] = {}
        self.networks: dict[str, None] = {"VM Network": None}
        self.parts: Entry = {}
        """The other sections, by their names in the world file."""
        self.guest_network = "10.213.0.0/24"
        self._placed: dict[str, str] = {}

    def of(self, *kinds: str) -> Iterator[tuple[Key, Any]]:
        """The site's resources of these kinds."""
        return ((key, spec) for key, spec in self.site.resources.items() if key.kind in kinds)

    def outside(self) -> Iterator[Edge]:
        """References to what the site doesn't have, because it is there anyway."""
        for spec in self.site.resources.values():
            for edge in edges(spec):
                if edge.optional and not any(key in self.site.resources for key in edge.keys):
                    yield edge

    def part(self, section: str, name: str, value: object) -> Any:
        """Put a value into a section, unless something is there by that name; what is there then."""
        return self.parts.setdefault(section, {}).setdefault(name, value)

    @property
    def version(self) -> dict[str, str]:
        """vCenter's, where the site needs a newer one than worlds have: for zones, VPCs and the Foundation
        load balancer.
        """
        zoned = any(
            "zone" in each or "zones" in each.get("supervisor", ()) for each in self.clusters.values()
        )
        ways = [spec.enable for _, spec in self.of("supervisor") if spec.enable]
        return {"version": "9.0.0.0"} if zoned or any(way.vpc or way.foundation() for way in ways) else {}

    def cluster(self, name: str) -> Entry:
        """A compute cluster."""
        return self.clusters.setdefault(name, {"hosts": {}})

    def host(self, name: str, cluster: str | None = None) -> Entry:
        """A host, in its cluster if the site names one."""
        if cluster:
            self.cluster(cluster)
            self._placed[name] = cluster
        return self.hosts.setdefault(name, dict(HOST))

    def store(self) -> str:
        """A datastore that every host mounts."""
        if not self.datastores:
            self.datastores[STORE] = None
        return next(iter(self.datastores))

    def data(self) -> Entry:
        """The world file's values."""
        self._place_hosts()
        server, _, port = (self.site.vcenter.server if self.site.vcenter else "vcenter.test").partition(":")
        found = {
            "pace": 0.1,
            "datacenter": ((self.site.vcenter and self.site.vcenter.datacenter) or "Datacenter").strip("/"),
            "vcenter": {"host": server, **({"port": int(port)} if port else {}), **self.version},
            "env": self.env,
            "groups": list(self.groups),
            "users": [{"name": name, **user} for name, user in self.users.items()],
            "clusters": self.clusters,
            "datastores": {name: {"capacity": "64TiB"} for name in self.datastores},
            "networks": list(self.networks),
            "guest_network": self.guest_network,
            **self.parts,
        }
        return {name: value for name, value in found.items() if value or name == "pace"}

    def _place_hosts(self) -> None:
        """Hosts whose cluster the site doesn't name go to the first cluster whose image the site sets, else
        to the first without a supervisor; no cluster stays empty.
        """
        self.store()
        homes = [name for name, each in self.clusters.items() if "image" in each]
        homes += [name for name, each in self.clusters.items() if "supervisor" not in each]
        for name, host in self.hosts.items():
            home = self._placed.get(name) or (homes[0] if homes else "compute-1")
            self.cluster(home)["hosts"][name] = host
        if not self.clusters:
            self.cluster("compute-1")
        for number, each in enumerate(self.clusters.values(), 1):
            if not each["hosts"]:
                each["hosts"] = {f"esx{number}-{count}.sandbox.test": dict(HOST) for count in (1, 2)}
