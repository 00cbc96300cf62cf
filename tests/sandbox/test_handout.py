"""The files that a sandbox hands out: with them clients that know nothing of it find their way and log in."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes
import yaml
from asking import Rest
from pyVim.connect import Disconnect, SmartConnect
from test_tanzu_in_one_world import cluster_runs, namespace
from waiting import until

from bfinfra.sandbox import SMALL_WORLD, Running, reset, start, stop


def variables(world: Running) -> dict[str, str]:
    """What a shell has after `. env`."""
    found = subprocess.run(
        ["/bin/sh", "-ec", '. "$1"; env -0', "sh", str(world.env_file)],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in found.stdout.split("\0") if line)


def namespaces(world: Running, context: str | None = None) -> set[str]:
    """As the official client sees them through the kubeconfig."""
    with kubernetes.config.new_client_from_config(variables(world)["KUBECONFIG"], context) as client:
        return {each.metadata.name for each in kubernetes.client.CoreV1Api(client).list_namespace().items}


def contexts(world: Running) -> list[str]:
    return [each["name"] for each in yaml.safe_load((world.state / "kubeconfig").read_text())["contexts"]]


def test_both_are_for_their_owner_only_and_what_may_be_shown_holds_no_secret(small: Running) -> None:
    config = yaml.safe_load((small.state / "kubeconfig").read_text())
    for name in ("env", "kubeconfig"):
        assert (small.state / name).stat().st_mode & 0o777 == 0o600
    hidden = {small.env["VCENTER_PASSWORD"], *(user["user"]["token"] for user in config["users"])}
    assert not hidden & set(small.clients.values())
    found = variables(small)
    assert found.items() >= small.clients.items()
    assert found["GOVC_PASSWORD"] == found["VCENTER_PASSWORD"] == small.env["VCENTER_PASSWORD"]
    assert found["SUPERVISOR_COMPUTE"] == small.addresses["10.1.0.1:443"]


def test_pyvmomi_as_shipped_logs_in_with_what_is_meant_for_govc(small: Running) -> None:
    found = variables(small)
    url = urlsplit(found["GOVC_URL"])
    trust = ssl.create_default_context(cafile=found["GOVC_TLS_CA_CERTS"])
    si = SmartConnect(
        host=url.hostname,
        port=url.port,
        user=found["GOVC_USERNAME"],
        pwd=found["GOVC_PASSWORD"],
        sslContext=trust,
    )
    assert [each.name for each in si.content.rootFolder.childEntity] == [found["GOVC_DATACENTER"]]
    Disconnect(si)


def test_the_official_client_lists_each_cluster_through_its_context(small: Running) -> None:
    assert contexts(small) == ["compute", "other"]
    assert "default" in namespaces(small)
    assert "kube-system" in namespaces(small, "other")


def test_a_guest_cluster_has_a_context_while_it_runs_and_over_a_restart(own: Running) -> None:
    namespace(own)
    cluster_runs(own)
    until(lambda: "ns/c1" in contexts(own))
    assert "ns" in namespaces(own, "compute")
    assert "ns" not in namespaces(own, "ns/c1")
    stop(own.state)
    assert not (own.state / "env").exists()
    assert not (own.state / "kubeconfig").exists()
    start(SMALL_WORLD, own.state)
    assert "default" in namespaces(own, "ns/c1")
    Rest(own).call("DELETE", "/api/vcenter/namespaces/instances/ns")
    until(lambda: contexts(own) == ["compute", "other"])


def test_a_reset_leaves_what_it_handed_out_good(small: Running, tmp_path: Path) -> None:
    before = (variables(small), contexts(small))
    reset(small.state)
    assert (variables(small), contexts(small)) == before
    assert "default" in namespaces(small)
