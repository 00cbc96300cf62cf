"""tanzu_cluster against a real API server that knows its resource: the kind is wired by hand, as no peer has
supervisor namespaces.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from peers.found import Peers
from peers.site_files import SPECS, all_are, endings, fields
from peers.spaces import Engine
from peers.tanzu_controller import Controller

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.transport import Middleware
from bfinfra.kinds.supervisor.tanzu_cluster.kind import TanzuCluster
from bfinfra.model.errors import SiteError
from bfinfra.sandbox.kubernetes.tanzu_definitions import definitions

HERE = Path(__file__).parent
ADDRESS = "tanzu_cluster/cluster-01"


class Site(Engine):
    """The site file, and the engine on the two kinds."""

    name = "tanzu_cluster"

    def __init__(self, folder: Path, peers: Peers, own: str, *middleware: Middleware) -> None:
        super().__init__(SPECS / "peers/tanzu.yaml", folder, peers, own, *middleware)

    def made(self, clusters: Clusters) -> TanzuCluster:
        return TanzuCluster(clusters)


@pytest.fixture(scope="module")
def definition(peers: Peers) -> None:
    define(peers)


def define(peers: Peers) -> None:
    """Stays behind on the throw-away API server: others may be using it."""
    manifest = yaml.safe_load((HERE / "tanzukubernetesclusters.yaml").read_text())
    peers.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=json.dumps(manifest))
    peers.established(manifest["metadata"]["name"])


@pytest.fixture
def site(definition: None, peers: Peers, tmp_path: Path) -> Iterator[Site]:
    with placed(peers, tmp_path) as site:
        yield site


@contextlib.contextmanager
def placed(peers: Peers, folder: Path) -> Iterator[Site]:
    """The site with a namespace of its own."""
    site = Site(folder, peers, uuid.uuid4().hex[:8])
    peers.kubectl("create", "namespace", site.space)
    peers.kubectl(
        "create",
        "quota",
        "storage",
        "-n",
        site.space,
        "--hard=gold.storageclass.storage.k8s.io/requests.storage=1Ti",
    )
    yield site
    site.close()
    peers.kubectl("delete", "namespace", site.space, "--wait=false")


@pytest.fixture
def controller(site: Site, peers: Peers) -> Iterator[Controller]:
    with controlled(site, peers) as controller:
        yield controller


@contextlib.contextmanager
def controlled(site: Site, peers: Peers) -> Iterator[Controller]:
    """Somebody moves its clusters."""
    controller = Controller(peers.kubeconfig, site.space)
    yield controller
    peers.kubectl("delete", "tkc", "--all", "-n", site.space, "--timeout=20s")
    controller.close()


def live(peers: Peers, site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        peers.kubectl("get", "tkc", "cluster-01", "-n", site.space, "-o", "json")
    )
    return found


def test_a_cluster_is_made_waited_for_and_agreed_without_another_write(
    site: Site, controller: Controller, peers: Peers
) -> None:
    all_are(site.run(), "done", "kept")
    assert controller.phases == ["creating", "running"]
    found = live(peers, site)
    assert found["spec"]["topology"]["workers"]["volumes"] == [
        {"name": "containerd", "mountPath": "/var/lib/containerd", "capacity": {"storage": "50Gi"}}
    ]
    assert found["spec"]["settings"]["network"]["pods"] == {"cidrBlocks": ["192.168.0.0/16"]}
    assert found["metadata"]["labels"]["bfinfra.io/site"] == site.given["site"]
    writes = site.transport.tally.writes
    all_are(site.run(), "kept")
    assert site.transport.tally.writes == writes
    assert site.changes() == {}


def test_scaling_is_one_field_and_goes_through_updating(
    site: Site, controller: Controller, peers: Peers
) -> None:
    all_are(site.run(), "done", "kept")
    site.cluster["workers"]["workers"]["count"] = "3"
    assert site.changes() == {ADDRESS: {"workers.workers.count"}}
    all_are(site.run(), "done", "kept")
    assert controller.phases == ["creating", "running", "updating", "running"]
    assert len(live(peers, site)["status"]["nodeStatus"]) == 4
    assert site.changes() == {}


def test_a_version_goes_up_one_minor_and_no_further(site: Site, controller: Controller, peers: Peers) -> None:
    all_are(site.run(), "done", "kept")
    site.cluster["version"] = "v1.22.9"
    assert "more than one minor version" in str(site.plan().problems)
    site.cluster["version"] = "v1.21.2"
    assert site.changes() == {ADDRESS: {"version"}}
    all_are(site.run(), "done", "kept")
    assert live(peers, site)["spec"]["distribution"]["version"] == "v1.21.2"


def test_what_kubectl_changes_is_drift_and_is_put_right(
    site: Site, controller: Controller, peers: Peers
) -> None:
    all_are(site.run(), "done", "kept")
    change = {"spec": {"topology": {"workers": {"count": 5, "class": "best-effort-large"}}}}
    peers.kubectl("patch", "tkc", "cluster-01", "-n", site.space, "--type=merge", "-p", json.dumps(change))
    assert site.changes() == {ADDRESS: {"workers.workers.count", "workers.workers.vm_class"}}
    all_are(site.run(), "done", "kept")
    assert live(peers, site)["spec"]["topology"]["workers"]["count"] == 2
    assert site.changes() == {}


def test_a_cluster_that_somebody_deletes_is_made_again(
    site: Site, controller: Controller, peers: Peers
) -> None:
    all_are(site.run(), "done", "kept")
    peers.kubectl("delete", "tkc", "cluster-01", "-n", site.space, "--timeout=20s")
    assert set(fields(site.plan())) == {ADDRESS}
    all_are(site.run(), "done", "kept")


def test_destroy_waits_until_it_is_gone(site: Site, controller: Controller, peers: Peers) -> None:
    all_are(site.run(), "done", "kept")
    all_are(site.run(destroy=True), "done", "kept")
    assert peers.kubectl("get", "tkc", "-n", site.space, "-o", "name") == ""
    assert controller.phases[-1] == "deleting"


def test_a_cluster_that_fails_says_why(site: Site, controller: Controller) -> None:
    controller.failing = "no hosts left for the class best-effort-small"
    found = endings(site.run())[ADDRESS]
    assert found.startswith("failed")
    assert "no hosts left" in found


def test_without_a_controller_it_is_still_waiting(site: Site) -> None:
    found = endings(site.run(deadline=0.5))[ADDRESS]
    assert found.startswith("still-waiting")
    assert "0 of 3 nodes" in found or "accepted" in found


def test_a_storage_class_that_the_quota_does_not_offer_is_refused_before_anything_is_sent(site: Site) -> None:
    site.cluster["control_plane"]["storage_class"] = "golf"
    with pytest.raises(SiteError, match=r"offers no storage class golf.* did you mean gold"):
        site.plan()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("namespaced_classes", [False, True])
def test_the_sandboxs_definitions_are_taken_by_the_real_server(
    peers: Peers, namespaced_classes: bool, first: bool
) -> None:
    known = definitions(namespaced_classes=namespaced_classes, first=first)
    given = {"apiVersion": "v1", "kind": "List", "items": known}
    output = peers.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", given=json.dumps(given)
    )
    assert output.count("serverside-applied") == len(known)
