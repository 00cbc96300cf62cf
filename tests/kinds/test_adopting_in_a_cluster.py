"""What stands already is taken over as it is: marked, and nothing else. The next apply brings it to what the file
says, and does not make it anew.
"""

from __future__ import annotations

import uuid

import pytest
import yaml
from at_cluster import Site

from bfinfra.backends.kubernetes.marks import mark_of, mark_only, notes
from bfinfra.kinds.cluster.token_secret.kind import HISTORY
from bfinfra.model.errors import Missing, RemoteError
from bfinfra.model.mark import Mark
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


def bring(site):
    """What the file says, by an apply that the plan announces."""
    assert len(site.plan().pending) == 1
    site.applied()
    assert site.plan().pending == ()


def test_a_namespace(site, cluster):
    name = f"old-{uuid.uuid4().hex[:8]}"
    before = cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"theirs": "x"}}}
    )
    site.resources = {"namespace": {name: {"cluster": "k", "labels": {"team": "a"}}}}
    adopt(site, f"namespace/{name}")
    adopted = cluster.get("v1", "Namespace", name)
    assert mark_of(adopted).site == site.name
    assert (adopted["metadata"]["labels"]["theirs"], adopted["metadata"]["labels"].get("team")) == ("x", None)
    bring(site)
    after = cluster.get("v1", "Namespace", name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"]["team"] == "a"


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
    for secret in (cluster.get("v1", "Secret", name, space) for name in names):
        assert (mark_of(secret).address, secret["data"]) == ("token_secret/t", {"old": "eA=="})
        assert HISTORY not in notes(secret), "nobody knows what it held"
    bring(site)
    assert not any("old" in cluster.get("v1", "Secret", name, space)["data"] for name in names)


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
    assert site.plan().pending == ()


def test_what_bfinfra_applied_before_its_mark_was_lost_stays(site, cluster, space):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": space}}
    site.resources = {"manifests": {"m": {"cluster": "k", "namespace": space, "files": ["m.yaml"]}}}
    for data in ({"a": "1", "b": "1"}, {"a": "2", "b": "2"}):
        (site.folder / "m.yaml").write_text(yaml.safe_dump({**settings, "data": data}))
        site.applied()
    found = cluster.get("v1", "ConfigMap", "s", space)
    gone = {part: dict.fromkeys(found["metadata"][part]) for part in ("labels", "annotations")}
    cluster.patch("v1", "ConfigMap", "s", {"metadata": gone}, space)
    cluster.delete("v1", "ConfigMap", "bfinfra-manifests-m", space)
    (site.folder / "m.yaml").write_text(yaml.safe_dump({**settings, "data": {"a": "3"}}))
    adopt(site, "manifests/m")
    adopted = cluster.get("v1", "ConfigMap", "s", space)
    assert (mark_of(adopted).address, adopted["data"]) == ("manifests/m", {"a": "2", "b": "2"})
    bring(site)
    assert cluster.get("v1", "ConfigMap", "s", space)["data"] == {"a": "3"}


def test_another_object_of_the_name_gets_no_mark_and_none_is_made(site, cluster, space):
    mark = Mark(site.name, "manifests/m")
    made = cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": space}}
    )
    with pytest.raises(RemoteError):
        cluster.apply(mark_only(made, mark, str(uuid.uuid4())), force=True)
    assert mark_of(cluster.get("v1", "ConfigMap", "s", space)) is None
    cluster.delete("v1", "ConfigMap", "s", space)
    with pytest.raises(Missing):
        cluster.apply(mark_only(made, mark, made["metadata"]["uid"]), force=True)
    assert cluster.get("v1", "ConfigMap", "s", space) is None


def test_a_manifest_with_the_uid_of_a_live_object_is_applied_whole(site, cluster, space):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": space}}
    site.resources = {"manifests": {"m": {"cluster": "k", "namespace": space, "files": ["m.yaml"]}}}
    (site.folder / "m.yaml").write_text(yaml.safe_dump({**settings, "data": {"a": "1", "b": "1"}}))
    site.applied()
    uid = cluster.get("v1", "ConfigMap", "s", space)["metadata"]["uid"]
    read_out = {**settings, "metadata": {**settings["metadata"], "uid": uid}, "data": {"a": "2"}}
    (site.folder / "m.yaml").write_text(yaml.safe_dump(read_out))
    site.applied()
    assert cluster.get("v1", "ConfigMap", "s", space)["data"] == {"a": "2"}
