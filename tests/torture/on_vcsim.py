"""The site of tests/torture/watched.yaml, as much of it as vcsim can have, and changes of it by govc and
pyVmomi.
"""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from peers.conftest import vcsim_site
from peers.found import USER, Peers
from peers.own_vcsim import started
from peers.site_files import SiteFile, all_are, endings
from pyVim.connect import Disconnect, SmartConnect
from torture import hands
from torture.hands import Hands, NotDone
from torture.wire import Wire

MACHINES = ("bf-01", "worker-1", "worker-2")
TEMPLATE = "centos-7.6"
HOST = "DC0_C0_H0"
COLLECTOR = re.compile(rb"<_this[^>]*>([^<]+)</_this>")
DESTROY = (
    b'<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    b'<soapenv:Body><DestroyPropertyCollector xmlns="urn:vim25"><_this type="PropertyCollector">%s</_this>'
    b"</DestroyPropertyCollector></soapenv:Body></soapenv:Envelope>"
)


class Collector:
    """Middleware that knows the collector of a watch, and can destroy it."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner
        self._last: httpx2.Request | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if b"WaitForUpdatesEx" in request.read():
            self._last = request
        return self._inner.handle_request(request)

    def destroy(self) -> bool:
        """In the watch's own session. Returns whether there was one."""
        last, found = self._last, COLLECTOR.search(self._last.read()) if self._last else None
        if last is None or found is None:
            return False
        headers = {name: each for name, each in last.headers.items() if name != "content-length"}
        request = httpx2.Request("POST", last.url, headers=headers, content=DESTROY % found[1])
        with suppress(httpx2.HTTPError):  # the wire was cut meanwhile
            self._inner.handle_request(request).read()
        return True

    def close(self) -> None:
        self._inner.close()


@dataclass
class Vcenter:
    """`peers`: with the vcsim that runs now; it can start again, empty, behind the same wire."""

    peers: Peers
    folder: Path
    wire: Wire
    stack: ExitStack

    def restart(self) -> None:
        """Another one takes its place. Nothing of what was in it is there."""
        self.stack.close()
        self.peers = self.stack.enter_context(started(self.peers, *words(self.folder)))
        host, _, port = self.peers.vcsim.rpartition(":")
        self.wire.behind = (host, int(port))
        self.wire.cut()

    def prepare(self) -> None:
        """The template of the site's machines."""
        place = ("-host", HOST, "-ds", "LocalDS_0", "-net", "VM Network", "-g", "centos7_64Guest")
        self.peers.govc("vm.create", "-on=false", *place, TEMPLATE)
        self.peers.govc("vm.markastemplate", TEMPLATE)

    def apply(self, site: SiteFile) -> None:
        """Until nothing is left. vcsim has no guests: what their tools report is set from outside."""
        first = endings(site.apply(deadline=1))
        waits = [
            each for each in MACHINES if any(each in where and "still" in how for where, how in first.items())
        ]
        for each in waits:
            guest = (
                "-e",
                "SET.guest.toolsRunningStatus=guestToolsRunning",
                "-e",
                "SET.guest.ipAddress=10.9.0.5",
            )
            self.peers.govc("vm.change", "-vm", each, *guest)
        all_are(site.apply(deadline=5), "done", "kept")

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A pyVmomi session of somebody else, past the wire."""
        host, _, port = self.peers.vcsim.rpartition(":")
        trust = ssl.create_default_context(cafile=str(self.folder / "vcsim.crt"))
        trust.check_hostname = False
        si = SmartConnect(host=host, port=int(port), user=USER, pwd=self.peers.password, sslContext=trust)
        try:
            yield si
        finally:
            Disconnect(si)


@contextmanager
def vcenter(peers: Peers, folder: Path, through: Wire) -> Iterator[Vcenter]:
    """A vcsim behind the wire, with a certificate that outlives it."""
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", "/CN=127.0.0.1", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", "vcsim.key", "-out", "vcsim.crt"),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with ExitStack() as stack:
        made = Vcenter(peers, folder, through, stack)
        made.restart()
        made.prepare()
        yield made


def words(folder: Path) -> tuple[str, ...]:
    return "-tlscert", str(folder / "vcsim.crt"), "-tlskey", str(folder / "vcsim.key")


def site_of(found: Vcenter, folder: Path, ova: Path) -> SiteFile:
    """The site, which reaches vcsim through the wire."""
    host, port = found.wire.address
    made = vcsim_site(replace(found.peers, vcsim=f"{host}:{port}"), folder, ova)
    machine = {"template": TEMPLATE, "cluster": "DC0_C0", "host": "DC0_C0_H1", "datastore": "LocalDS_0"}
    size = {"cpus": "2", "memory": "2GiB", "adapters": [{"network": "VM Network"}]}
    made.given |= {
        "virtual_machine": {"worker-1": {**machine, **size}, "worker-2": {**machine, **size}},
        "bitfusion_vm": {"worker-1": {"vm": "worker-1", "settings": {"example.bitfusion.client": "true"}}},
        "resource_pool": {
            "gpu": {"cluster": "DC0_C0", "memory": {"reservation": "1GiB", "limit": "64GiB"}},
            "bitfusion": {"cluster": "DC0_C0", "parent": "gpu", "cpu": {"shares": "high"}},
        },
        "distributed_switch": {"roce": {"mtu": "9000"}},
        "port_group": {"high-speed": {"switch": "roce", "vlan": "31"}},
    }
    return made


def govc(by_hand: Hands, *command: str) -> None:
    """Raises NotDone."""
    try:
        by_hand.govc(*command)
    except AssertionError as error:
        raise NotDone(*error.args) from None


def powered(by_hand: Hands) -> None:
    """By govc, as the changes that follow."""
    govc(by_hand, "vm.power", by_hand.chance.choice(("-on", "-off")), by_hand.chance.choice(MACHINES))


def resized(by_hand: Hands) -> None:
    size = ("-m", str(by_hand.chance.choice((1024, 2048, 4096))), "-c", str(by_hand.chance.choice((2, 4))))
    govc(by_hand, "vm.change", "-vm", by_hand.chance.choice(MACHINES), *size)


def optioned(by_hand: Hands) -> None:
    value = by_hand.chance.choice(("true", "false", ""))
    govc(by_hand, "vm.change", "-vm", "worker-1", "-e", f"example.bitfusion.client={value}")


CHANGES: hands.Changes = (
    *(hands.power, hands.memory, hands.processors, hands.annotation, hands.option, hands.reservation) * 2,
    *(hands.renamed_machine, hands.mark, hands.adapter, hands.machine_gone, hands.clone),
    *(hands.renamed_pool, hands.pool_gone, hands.switch, hands.renamed_group, hands.group_gone),
    *(powered, resized, optioned) * 2,
)
"""Changes that vcsim reports. It tells no collector of changed limits of a pool, of custom attributes, of the
VLAN of a port group or, being our own addition to it, of passthrough.
"""
