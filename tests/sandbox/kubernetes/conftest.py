"""A cluster of the sandbox behind a real TLS listener."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from kube_serving import OPENED, Served

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.kubernetes.bootstrap import bootstrap
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.tally import Tally


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def listeners(pki: Pki) -> Iterator[Listeners]:
    opened = Listeners(pki, Faults(), Tally())
    yield opened
    opened.close_all()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No lightkube client outlives its test."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def clock() -> Clock:
    return Clock(pace=0)


@pytest.fixture
def served(listeners: Listeners, pki: Pki, clock: Clock) -> Iterator[Served]:
    """A bare API server: nothing runs in it."""
    cluster = Cluster("bare", "v1.27.5", clock)
    bootstrap(cluster)
    port = listeners.open("bare.local:6443", cluster.handler)
    yield Served(cluster, f"https://127.0.0.1:{port}", pki.ca_file)
    cluster.close()


@pytest.fixture
def http(served: Served) -> Iterator[httpx2.Client]:
    with served.http() as client:
        yield client
