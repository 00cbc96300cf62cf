from __future__ import annotations

import contextlib
import fcntl
import hashlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from peers.found import Peers
from peers.own_vcsim import started
from peers.site_files import SPECS, SiteFile

from bfinfra.sandbox.factories.ova import make_ova


@dataclass
class Vcsim:
    """A vcsim of the test's own, and govc on it."""

    peers: Peers

    def govc(self, *words: str) -> str:
        return self.peers.govc(*words)


@pytest.fixture
def alone(peers: Peers, request: pytest.FixtureRequest) -> Iterator[None]:
    """For what a cluster has once, which the test's module names as `ONCE`: its nodes, a definition,
    operators, each of which sees the Sites of all namespaces. One test at a time.
    """
    with peers.kubeconfig.with_name(f"{request.module.ONCE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def ova(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ova") / "bitfusion-server.ova"
    make_ova(path)
    return path


@pytest.fixture
def vcsim(peers: Peers) -> Iterator[Vcsim]:
    """Started for one test."""
    with own_vcsim(peers) as found:
        yield found


@contextlib.contextmanager
def own_vcsim(peers: Peers) -> Iterator[Vcsim]:
    """A vcsim of the caller's own, with govc on it."""
    with started(peers) as found:
        yield Vcsim(found)


def vcsim_site(peers: Peers, folder: Path, ova: Path) -> SiteFile:
    """specs/peers/vcsim.yaml for the vcsim of these peers."""
    site = SiteFile(SPECS / "peers/vcsim.yaml", folder)
    host, _, port = peers.vcsim.rpartition(":")
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))).hexdigest()
    site.given["vcenter"] |= {"server": peers.vcsim, "trust": {"sha256": pin}}
    site.put("vcsim.password", peers.password)
    site.put("customer.password", "of-the-customer-1!")
    (folder / "bitfusion-server.ova").symlink_to(ova)
    return site


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal and locks of the test's own."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
