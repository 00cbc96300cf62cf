"""govc and kubectl on the sandbox, with nothing but the files that it hands out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from peers.found import Peers, run

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

AFTER = '. "$1"; shift; exec "$@"'


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Running]:
    yield start(SMALL_WORLD, tmp_path / "state")
    stop(tmp_path / "state")


def after(world: Running, *command: str) -> str:
    """What a command prints in a shell that read the env file."""
    return run(
        ["/bin/sh", "-ec", AFTER, "sh", str(world.env_file), *command], {"GOVC_PERSIST_SESSION": "false"}
    )


def test_govc_lists_the_inventory_and_checks_the_certificate(small: Running, peers: Peers) -> None:
    assert after(small, str(peers.bin / "govc"), "ls", "host").split() == [
        "/dc/host/farm",
        "/dc/host/compute",
    ]
    assert "VMware vCenter Server" in after(small, str(peers.bin / "govc"), "about")


def test_kubectl_lists_each_context(small: Running, peers: Peers) -> None:
    kubectl = str(peers.bin / "kubectl")
    contexts = after(small, kubectl, "config", "get-contexts", "--output=name").split()
    assert sorted(contexts) == ["compute", "other"]
    for context in contexts:
        assert (
            "namespace/default"
            in after(small, kubectl, "--context", context, "get", "namespaces", "--output=name").split()
        )
