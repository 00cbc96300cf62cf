"""A virtual machine and a Bitfusion server on vcsim: each run that makes, changes or deletes one is killed before
and after each of its writes. The next run ends as one that nobody killed, and what others have is as before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from peers.conftest import Vcsim, vcsim_site
from peers.found import Peers
from peers.own_vcsim import started
from peers.site_files import RETRY, SiteFile, all_are, everything
from peers.test_untidy_vcsim import WHILE, compared
from peers.whole_inventory import Whole, whole
from torture import striking
from torture.counting import Count

import bfinfra
from bfinfra.backends import writes
from bfinfra.backends.transport import Middleware
from bfinfra.engine.apply import Options
from bfinfra.model.events import Event, Settling
from bfinfra.model.outcome import Outcome

pytestmark = pytest.mark.thorough

TEMPLATE, NEIGHBOUR, THEIRS = "centos-7.6", "neighbour", "/DC0/vm/theirs"
NAMES = {"virtual_machine": "worker-1", "bitfusion_server": "bf-01"}
FIRST: Mapping[str, Mapping[str, object]] = {
    "virtual_machine": {
        "template": f"/DC0/vm/{TEMPLATE}",
        "cluster": "DC0_C0",
        "host": "DC0_C0_H0",
        "datastore": "LocalDS_0",
        "cpus": "1",
        "memory": "1GiB",
        "adapters": [{"network": "VM Network"}],
        "disks": {"scsi0:1": {"size": "1GiB"}},
    },
    "bitfusion_server": {"cpus": "1", "memory": "32GiB"},
}
"""What the site says of it at first; of a server, beside what specs/peers/vcsim.yaml does."""
PLACED = {"folder": "ours", "resource_pool": "gpu"}
LATER: Mapping[str, Mapping[str, object]] = {
    "virtual_machine": {"cpus": "2", "memory": "2GiB", "host": "DC0_C0_H1", **PLACED},
    "bitfusion_server": {"cpus": "2", "memory": "40GiB", **PLACED},
}
"""What it says otherwise then: the machine has to be off. No other datastore: vcsim's RelocateVM_Task moves no files."""
MOVED = ("MoveIntoFolder_Task", "MoveIntoResourcePool", "PowerOnVM_Task")
GONE = ("ShutdownGuest", "Destroy_Task")
WRITES = {
    "virtual_machine": {
        "made": ("CloneVM_Task", "PowerOnVM_Task"),
        "changed": ("ShutdownGuest", "ReconfigVM_Task", "RelocateVM_Task", *MOVED),
        "deleted": GONE,
    },
    "bitfusion_server": {
        "made": ("ImportVApp", "PowerOnVM_Task"),
        "changed": ("ShutdownGuest", "ReconfigVM_Task", *MOVED),
        "deleted": GONE,
    },
}
"""The acts of a life, with what each of them writes at least."""
BY_TIME = re.compile(r"changeVersion|createDate|modified|timestamp|bootTime|summary/vm/")
"""What of a machine differs each time that it is made or changed."""
SALTED = re.compile(r"(?<= applied=)\S+")
"""What of a mark differs from process to process."""
MOVE = re.compile(rb"<_this[^>]*>([^<]+)</_this>.*<list[^>]*>([^<]+)</list>", re.DOTALL)
IS_MOVED = (
    b'<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    b'<soapenv:Body><MoveIntoResourcePoolResponse xmlns="urn:vim25"/></soapenv:Body></soapenv:Envelope>'
)


class Pools:
    """Middleware: vcsim has no MoveIntoResourcePool. There govc relocates the machine to that pool."""

    def __init__(self, inner: httpx2.BaseTransport, peers: Peers) -> None:
        self._inner, self._peers = inner, peers

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if writes.soap_method(request) != "MoveIntoResourcePool":
            return self._inner.handle_request(request)
        found = MOVE.search(request.read())
        assert found is not None
        pool, machine = (each.decode() for each in found.groups())
        self._peers.govc("vm.migrate", "-pool", f"ResourcePool:{pool}", f"VirtualMachine:{machine}")
        return httpx2.Response(200, headers={"Content-Type": "text/xml; charset=utf-8"}, content=IS_MOVED)

    def close(self) -> None:
        self._inner.close()


class Told:
    """Middleware that tells the name of each write."""

    def __init__(self, inner: httpx2.BaseTransport, names: list[str]) -> None:
        self._inner, self._names = inner, names

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if writes.writes(request):
            self._names.append(writes.name(request))
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def applied(
    path: Path, peers: Peers, filling: Middleware, on_event: Callable[[Event], None] = lambda _: None
) -> Outcome:
    """`filling`: middleware of the caller's own."""
    return bfinfra.apply(
        bfinfra.load(path),
        approve=everything,
        options=Options(retry=RETRY, deadline=30),
        on_event=on_event,
        context=bfinfra.RunContext(retry=RETRY, middleware=(lambda inner: filling(Pools(inner, peers)),)),
    )


def killed(path: Path, peers: Peers, state: Path, filling: Middleware) -> None:
    """In a process of its own, on the same machine."""
    os.environ["BFINFRA_STATE_HOME"] = str(state)
    applied(path, peers, filling)


@dataclass
class Life:
    """The site's machine on a vcsim that others use, too: `before` is all that they have there, `files` and `machines`
    a part of it.
    """

    kind: str
    vcsim: Vcsim
    site: SiteFile
    server: Mapping[str, object]
    before: Whole
    files: str
    machines: Sequence[str]

    def says(self, act: str) -> None:
        """The site file, for an act."""
        self.site.given.pop(self.kind, None)
        if act != "deleted":
            fields = {**FIRST[self.kind], **(LATER[self.kind] if act == "changed" else {})}
            of_kind = self.server if self.kind == "bitfusion_server" else {}
            self.site.given[self.kind] = {NAMES[self.kind]: {**of_kind, **fields}}
        self.site.load()

    def path(self, act: str) -> str:
        """Where the machine is then."""
        return f"/DC0/vm/{'ours/' if act == 'changed' else ''}{NAMES[self.kind]}"

    def ends(self, act: str) -> list[str]:
        """It is applied to its end, and all is as the file says; the names of its writes."""
        names: list[str] = []

        def starts(event: Event) -> None:
            if isinstance(event, Settling) and event.key.kind == self.kind:
                guest = ("toolsRunningStatus=guestToolsRunning", "ipAddress=10.9.0.5")
                words = (word for each in guest for word in ("-e", f"SET.guest.{each}"))
                self.vcsim.govc("vm.change", "-vm", self.path(act), *words)

        outcome = applied(self.site.path, self.vcsim.peers, lambda inner: Told(inner, names), starts)
        all_are(outcome, "done", "kept")
        assert self.site.changes() == {}
        assert self.site.drift().found == ()
        return names

    def seen(self, act: str) -> Mapping[str, str]:
        """The machine, whole, but for what differs each time; nothing of others differs, and no half-made one is left."""
        there = self.vcsim.govc("find", "/", "-type", "m").splitlines()
        assert sorted(there) == sorted([*self.machines, *([] if act == "deleted" else [self.path(act)])])
        sessions = self.vcsim.govc("session.ls")
        assert "bfinfra" not in sessions, sessions
        now = listed(whole(self.vcsim.peers))
        if act == "deleted":
            assert self.vcsim.govc("datastore.ls", "-R") == self.files
            compared(self.before, now)
            return {}
        compared(self.before, now, but=WHILE)
        (own,) = (ref for ref in now.objects.keys() - self.before.objects.keys() if ref.startswith("Virtual"))
        values = now.objects[own].items()
        return {at: SALTED.sub("", each) for at, each in values if not BY_TIME.search(at)}


def listed(found: Whole) -> Whole:
    """Without machines that are gone: vcsim goes on listing them where they were before they were relocated."""

    def gone(at: str) -> bool:
        ref = at.rpartition("/")[2]
        return ref.startswith("VirtualMachine:") and ref not in found.objects

    return Whole(
        {ref: {at: v for at, v in each.items() if not gone(at)} for ref, each in found.objects.items()}
    )


@contextmanager
def beside_others(peers: Peers, kind: str, folder: Path, ova: Path) -> Iterator[Life]:
    """A vcsim with a machine of the same name in another folder, one that runs where the site's goes, a template, a
    folder and a pool.
    """
    with started(peers) as found:
        vcsim = Vcsim(found)
        place = ("-host", "/DC0/host/DC0_C0/DC0_C0_H2", "-ds", "LocalDS_0", "-net", "VM Network")
        made = ("-on=false", *place, "-disk", "1GiB", "-g", "centos7_64Guest")
        vcsim.govc("folder.create", "/DC0/vm/ours", THEIRS)
        vcsim.govc("pool.create", "/DC0/host/DC0_C0/Resources/gpu")
        vcsim.govc("vm.create", *made, TEMPLATE)
        vcsim.govc("vm.markastemplate", TEMPLATE)
        vcsim.govc("vm.create", *made, "-folder", THEIRS, NAMES[kind])
        vcsim.govc("vm.create", *place, "-folder", "/DC0/vm/ours", NEIGHBOUR)
        site = vcsim_site(found, folder, ova)
        server = site.given.pop("bitfusion_server")["bf-01"]
        if kind != "bitfusion_server":
            del site.given["gpu_host"]
        else:
            all_are(site.apply(), "done")
        there = vcsim.govc("find", "/", "-type", "m").splitlines()
        assert f"{THEIRS}/{NAMES[kind]}" in there
        yield Life(kind, vcsim, site, server, whole(found), vcsim.govc("datastore.ls", "-R"), there)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", NAMES)
def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next_one(
    kind: str, when: str, peers: Peers, tmp_path: Path, ova: Path
) -> None:
    state = Path(os.environ["BFINFRA_STATE_HOME"])
    with beside_others(peers, kind, tmp_path, ova) as life:
        names, seen = {}, {}
        for act, some in WRITES[kind].items():
            life.says(act)
            names[act] = life.ends(act)
            seen[act] = life.seen(act)
            assert {*some} <= {*names[act]}, names[act]
        counts = {act: Count(f"{kind} {act}, killed {when} each write") for act in names}
        for nth in range(1, max(map(len, names.values())) + 1):
            for act, written in names.items():
                life.says(act)
                if nth > len(written):
                    life.ends(act)
                    continue
                with counts[act].trial(f"{nth}, {written[nth - 1]}"):
                    there = life.site.path, life.vcsim.peers, state
                    striking.run_to_its_kill(killed, *there, nth=nth, when=when)
                    life.ends(act)
                    assert life.seen(act) == seen[act]
        for act, count in counts.items():
            print(f"{count.what}: {count.tried - len(count.broken)} of {len(names[act])}")  # noqa: T201 - N of N
            assert not count.broken, "\n".join([count.what, *count.broken])
            assert count.tried == len(names[act]) > 0
