"""What stands already is taken over as it is: marked, brought to what the file says, not made anew."""

from __future__ import annotations

import uuid

import pytest
import yaml
from at_cluster import Site

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.model.refs import Key


@pytest.fixture
def site(tmp_path, api, space):
    made = Site(tmp_path, api)
    yield made
    made.apply(destroy=True)


def adopt(site, address):
    key = Key.parse(address)
    assert len(site.plan().problems) == 1
    assert site.plan(adopt=frozenset({key})).problems == ()
    site.applied(adopt=frozenset({key}))
    assert site.plan().pending == ()


def test_a_namespace(site, cluster):
    name = f"old-{uuid.uuid4().hex[:8]}"
    before = cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"theirs": "x"}}}
    )
    site.resources = {"namespace": {name: {"cluster": "k", "labels": {"team": "a"}}}}
    adopt(site, f"namespace/{name}")
    after = cluster.get("v1", "Namespace", name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"]["team"] == "a"
    assert mark_of(after).site == site.name


def test_a_token_under_its_fixed_names(site, cluster, space):
    names = (
        "bitfusion-client-secret-ca.crt",
        "bitfusion-client-secret-client.yml",
        "bitfusion-client-secret-servers.conf",
    )
    for name in names:
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": space},
                "data": {"old": "eA=="},
            }
        )
    site.resources = {"token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": [space]}}}
    adopt(site, "token_secret/t")
    assert all(mark_of(cluster.get("v1", "Secret", name, space)).applied for name in names)


def test_a_running_job_is_marked_and_not_stopped(site, cluster, space):
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "a", "image": "busybox", "command": ["sleep", "9"]}],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": space},
        "spec": {"template": {"spec": pod}},
    }
    before = cluster.create(job)
    (site.folder / "w.yaml").write_text(yaml.safe_dump(job))
    site.resources = {"workload": {"w": {"cluster": "k", "namespace": space, "manifest": "w.yaml"}}}
    adopt(site, "workload/w")
    after = cluster.get("batch/v1", "Job", "train", space)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert mark_of(after).address == "workload/w"
