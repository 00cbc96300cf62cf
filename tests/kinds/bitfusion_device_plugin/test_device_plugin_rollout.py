"""The webhook reads its ConfigMaps when it starts and never again: what changes in them starts its pods
anew.
"""

from __future__ import annotations

import time

import pytest
from at_cluster import Site

from bfinfra.kinds.cluster.bitfusion_device_plugin import decide, readiness
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import CONFIG

ADDRESS = "bitfusion_device_plugin/p"


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    made = Site(tmp_path, api)
    made.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "bitfusion_device_plugin": {"p": {"cluster": "k"}},
    }
    return made


def plugin(site, **changes):
    site.resources["bitfusion_device_plugin"]["p"] |= changes


def pods(cluster):
    return {pod["metadata"]["uid"] for pod in cluster.list("v1", "Pod", "bwki", "app=bwki")}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"images": {"client": "mirror.example.com/client:9"}}),
        ({}, {"clients": [{"version": "451", "os": "ubuntu20", "folder": "f"}]}),
        ({"version": "0.3", "images": {"tag": "fixed"}}, {"version": "0.4", "images": {"tag": "fixed"}}),
        (
            {
                "version": "0.3",
                "images": {"tag": "fixed"},
                "clients": [{"version": "451", "os": "ubuntu20", "folder": "f"}],
            },
            {"version": "0.4"},
        ),
    ],
)
def test_a_changed_client_configuration_or_release_starts_the_webhook_s_pods_anew(
    site, cluster, before, after
):
    plugin(site, **before)
    site.applied()
    first = pods(cluster)
    plugin(site, **after)
    assert "RollOut" in [type(step).__name__ for step in site.item(ADDRESS).steps]
    site.applied()
    assert len(pods(cluster)) == 1
    assert not pods(cluster) & first
    assert site.plan().pending == ()


def test_pods_of_an_earlier_bfinfra_are_left_alone_until_what_they_read_has_changed(
    site, cluster, monkeypatch
):
    with monkeypatch.context() as earlier:
        earlier.setattr(decide, "_noted", lambda *_: "")
        site.applied()
    first = pods(cluster)
    assert site.plan().pending == ()
    with monkeypatch.context() as earlier:
        earlier.setattr(decide, "_noted", lambda *_: "")
        time.sleep(1.1)  # servers note whole seconds
        plugin(site, images={"client": "mirror.example.com/client:9"})
        site.applied()
    assert pods(cluster) == first
    (change,) = site.item(ADDRESS).changes
    assert change.field.endswith(CONFIG)
    site.applied()
    assert not pods(cluster) & first
    assert site.plan().pending == ()


def test_nodes_with_different_images_under_one_tag_are_reported():
    def pod(node, digest):
        return {
            "spec": {"nodeName": node},
            "status": {
                "containerStatuses": [
                    {"image": "r/webhook:1", "imageID": f"docker-pullable://r/webhook@sha256:{digest}"}
                ]
            },
        }

    assert [*readiness._different([pod("a", "0" * 64), pod("b", "0" * 64)])] == []
    (message,) = readiness._different([pod("a", "0" * 64), pod("b", "1" * 64)])
    assert "r/webhook:1 (sha256:000000000000 on a, sha256:111111111111 on b)" in message
