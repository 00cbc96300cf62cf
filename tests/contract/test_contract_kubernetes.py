"""A Kubernetes API: every call of `Cluster`, and every way in which it is refused."""

from __future__ import annotations

import datetime as dt

import pytest
from contract.calls import Account, call, lacks
from contract.sides import KubernetesSide

from bfinfra.backends.kubernetes import connection
from bfinfra.backends.kubernetes.errors import NotServed, Terminating
from bfinfra.backends.kubernetes.marks import mark_of, marked, selector
from bfinfra.backends.kubernetes.owned import owned
from bfinfra.kinds.cluster.network_path.policies import judge
from bfinfra.kinds.cluster.network_path.spec import Spec as Path
from bfinfra.model.errors import Busy, Conflict, Denied, Exists, Forbidden, Missing, Rejected
from bfinfra.model.mark import Mark


def config(space, data, name="settings", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": space, **metadata},
        "data": data,
    }


def meddle(cluster, path, body):
    """A merge patch by another field manager."""
    headers = {"content-type": "application/merge-patch+json"}
    cluster._do(
        lambda link: link.raw.patch(
            f"/api/v1/{path}", params={"fieldManager": "somebody"}, headers=headers, json=body
        )
    )


@call("cluster.create", "cluster.get", case="what is created is read back whole")
def test_created_and_read(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.create(config(space, {"a": "1"}, annotations={"note": "x"}))
    found = cluster.get("v1", "ConfigMap", "settings", space)
    assert found
    assert (
        found["data"],
        found["metadata"]["annotations"],
        found["metadata"]["managedFields"][0]["manager"],
    ) == ({"a": "1"}, {"note": "x"}, "bfinfra")


@call("cluster.create", case="the name is taken")
def test_creating_is_exclusive(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    cluster = kubernetes.open()
    cluster.create(config(space, {"a": "1"}))
    with account.refused(Exists):
        cluster.create(config(space, {"a": "2"}))


@call("cluster.create", case="an invalid object")
def test_an_invalid_object_is_rejected(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    with account.refused(Rejected):
        kubernetes.open().create(config(space, {}, "Not A Name"))


@call("cluster.create", case="into a namespace that isn't there")
def test_a_namespace_that_is_not_there(kubernetes: KubernetesSide, account: Account) -> None:
    with account.refused(Missing):
        kubernetes.open().create(config("nothing-of-the-kind", {}))


@call("cluster.create", "cluster.delete", case="into a namespace that is being removed")
def test_a_namespace_that_goes_takes_nothing_new(
    kubernetes: KubernetesSide, space: str, account: Account
) -> None:
    cluster = kubernetes.open()
    cluster.create(config(space, {}, "holder", finalizers=["example.com/held"]))
    cluster.delete("v1", "Namespace", space)
    with account.refused(Terminating):
        cluster.create(config(space, {}, "late"))
    cluster.patch("v1", "ConfigMap", "holder", {"metadata": {"finalizers": None}}, space)


@call("cluster.create", case="a Secret whose value isn't base64: the value isn't told")
def test_a_bad_secret_is_not_quoted(
    kubernetes: KubernetesSide, space: str, secret: str, account: Account
) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": space},
        "data": {"password": f"!{secret}"},
    }
    if kubernetes.mode == "cassette":
        body["data"] = {"password": "SCRUBBED"}
    with account.refused(Rejected) as failed:
        kubernetes.open().create(body)
    assert secret not in str(failed.value)


@call("cluster.create", "cluster.patch", case="an immutable Secret")
def test_an_immutable_secret_stays(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    cluster = kubernetes.open()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": space},
            "immutable": True,
            "data": {"a": "MQ=="},
        }
    )
    with account.refused(Rejected):
        cluster.patch("v1", "Secret", "s", {"data": {"a": "Mg=="}}, space)


@call("cluster.get", "cluster.delete", case="an object that isn't there")
def test_an_absent_object_is_none(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    assert cluster.get("v1", "ConfigMap", "nothing", space) is None
    cluster.delete("v1", "ConfigMap", "nothing", space)


@call("cluster.get", "cluster.list", case="a kind that isn't served")
def test_a_kind_that_is_not_served(kubernetes: KubernetesSide, account: Account) -> None:
    cluster = kubernetes.open()
    with account.refused(NotServed):
        cluster.get("nonsense.example.com/v1", "Thing", "x")
    with account.refused(NotServed):
        cluster.list("apps/v1", "Thing")


@call("cluster.list", case="by the site's label, in all namespaces")
def test_a_list_selects_by_label(kubernetes: KubernetesSide, space: str) -> None:
    cluster, site = kubernetes.open(), f"site{kubernetes.own}"
    mark = Mark(site, "workload/x").committed({"gpus": 2})
    cluster.create(marked(config(space, {}, "ours"), mark))
    cluster.create(config(space, {}, "theirs"))
    (found,) = cluster.list("v1", "ConfigMap", labels=selector(site))
    assert (found["kind"], found["metadata"]["name"], mark_of(found)) == ("ConfigMap", "ours", mark)


@call("cluster.names", case="without their contents, page by page, here and in all namespaces")
def test_names_are_listed_without_contents(
    kubernetes: KubernetesSide, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAGES", (2, 1))
    cluster = kubernetes.open()
    for number in range(3):
        cluster.create(config(space, {"key": "value"}, f"name{number}"))
    wanted = {(space, f"name{number}") for number in range(3)}
    assert wanted <= cluster.names("v1", "ConfigMap", space)
    assert {where for where, _ in cluster.names("v1", "ConfigMap", space)} == {space}
    assert wanted <= cluster.names("v1", "ConfigMap")


@call("cluster.list", case="network policies of a namespace")
def test_network_policies_are_listed(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    egress = {
        "podSelector": {"matchLabels": {"app": "train"}},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"ipBlock": {"cidr": "172.16.31.0/24"}}], "ports": [{"port": 56001}]}],
    }
    cluster.create(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "out", "namespace": space},
            "spec": egress,
        }
    )
    (found,) = cluster.list("networking.k8s.io/v1", "NetworkPolicy", space)
    spec = Path.model_validate({"cluster": "c", "addresses": ["172.16.31.5"], "pods": {"app": "train"}})
    assert [where for where, _ in judge(spec, spec.addresses, [found]).blocked] == [
        "172.16.31.5:55001",
        "172.16.31.5:45201",
    ]


@call("cluster.list", case="page by page")
def test_long_lists_come_whole(
    kubernetes: KubernetesSide, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAGES", (2, 1))
    cluster = kubernetes.open()
    for number in range(5):
        cluster.create(config(space, {}, f"n{number}", labels={"page": "me"}))
    assert [o["metadata"]["name"] for o in cluster.list("v1", "ConfigMap", space, "page=me")] == [
        f"n{n}" for n in range(5)
    ]


@call("cluster.find", case="many places, few of them taken")
def test_of_many_places_those_that_are_taken(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    for name in ("n1", "n7"):
        cluster.create(config(space, {"of": name}, name))
    for count in (2, 40):
        found = cluster.find("v1", "ConfigMap", [(space, f"n{n}") for n in range(count)], space)
        assert [each["data"]["of"] for each in found] == [
            name for name in ("n1", "n7") if int(name[1]) < count
        ]


@call("cluster.list", case="a kind found by discovery")
def test_other_kinds_are_discovered(kubernetes: KubernetesSide, space: str) -> None:
    assert kubernetes.open().list("coordination.k8s.io/v1", "Lease", space) == []


@call("cluster.apply", case="makes, changes, adds, removes")
def test_an_apply_makes_and_removes(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    for data in ({"keep": "1", "drop": "1"}, {"keep": "2", "add": "1"}, {"keep": "2"}):
        cluster.apply(config(space, data))
        assert data_of(cluster, space) == data


@call("cluster.apply", case="what was created is taken over")
def test_an_apply_takes_over_what_was_created(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.create(config(space, {"keep": "1", "drop": "1"}))
    cluster.apply(config(space, {"keep": "2"}))
    assert data_of(cluster, space) == {"keep": "2"}


@call("cluster.apply", case="what others set stays")
def test_an_apply_leaves_what_others_set(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.apply(config(space, {"mine": "1"}))
    meddle(cluster, f"namespaces/{space}/configmaps/settings", {"data": {"theirs": "1"}})
    cluster.apply(config(space, {"mine": "2"}))
    assert data_of(cluster, space) == {"mine": "2", "theirs": "1"}


@call("cluster.apply", case="a field that somebody else took: a conflict, unless forced")
def test_a_field_of_somebody_else_is_a_conflict(
    kubernetes: KubernetesSide, space: str, account: Account
) -> None:
    cluster = kubernetes.open()
    cluster.apply(config(space, {"a": "1"}))
    meddle(cluster, f"namespaces/{space}/configmaps/settings", {"data": {"a": "9"}})
    assert "data" not in owned(cluster.get("v1", "ConfigMap", "settings", space) or {})
    with account.refused(Conflict) as failed:
        cluster.apply(config(space, {"a": "1"}))
    assert "somebody" in str(failed.value)
    cluster.apply(config(space, {"a": "1"}), force=True)
    assert owned(cluster.get("v1", "ConfigMap", "settings", space) or {})["data"] == {"a": "1"}


@call("cluster.apply", case="a field that the schema doesn't know")
def test_an_unknown_field_is_rejected(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    with account.refused(Rejected):
        kubernetes.open().apply({**config(space, {}), "nonsense": True})


@call("cluster.apply", case="lists are merged by their keys")
def test_lists_are_merged_by_key(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": space}}
    cluster.apply(
        {
            **service,
            "spec": {
                "selector": {"a": "b"},
                "ports": [{"name": "one", "port": 1}, {"name": "two", "port": 2}],
            },
        }
    )
    meddle(
        cluster,
        f"namespaces/{space}/services/s",
        {"spec": {"ports": [{"name": n, "port": p} for n, p in (("one", 1), ("two", 2), ("three", 3))]}},
    )
    cluster.apply(
        {**service, "spec": {"selector": {"a": "b"}, "ports": [{"name": "one", "port": 1}]}}, force=True
    )
    found = cluster.get("v1", "Service", "s", space)
    assert found
    assert {p["name"] for p in found["spec"]["ports"]} >= {"one", "three"}


@call("cluster.patch", case="given fields change, null removes")
def test_a_patch_changes_what_it_names(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.create(config(space, {"a": "1", "b": "1"}))
    cluster.patch("v1", "ConfigMap", "settings", {"data": {"a": "2", "b": None}}, space)
    assert data_of(cluster, space) == {"a": "2"}


@call("cluster.patch", case="an old resourceVersion")
def test_an_old_version_is_a_conflict(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    cluster = kubernetes.open()
    before = cluster.create(config(space, {"a": "1"}))
    cluster.patch("v1", "ConfigMap", "settings", {"data": {"a": "2"}}, space)
    with account.refused(Conflict):
        cluster.patch(
            "v1",
            "ConfigMap",
            "settings",
            {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}, "data": {"a": "3"}},
            space,
        )


@call("cluster.patch", case="an object that isn't there")
def test_a_patch_of_nothing_is_missing(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    with account.refused(Missing):
        kubernetes.open().patch("v1", "ConfigMap", "nothing", {"data": {"a": "1"}}, space)


@call("cluster.patch_status", case="the status changes, and nothing else")
def test_a_status_is_patched_alone(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "nobody",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    before = cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim", "namespace": space},
            "spec": spec,
        }
    )
    cluster.patch_status(
        "v1",
        "PersistentVolumeClaim",
        "claim",
        {"conditions": [{"type": "Resizing", "status": "True"}]},
        space,
    )
    found = cluster.get("v1", "PersistentVolumeClaim", "claim", space)
    assert found
    assert [each["type"] for each in found["status"]["conditions"]] == ["Resizing"]
    assert found["spec"] == before["spec"]


@call("cluster.patch_status", case="an object that isn't there")
def test_a_status_of_nothing_is_missing(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    with account.refused(Missing):
        kubernetes.open().patch_status("v1", "PersistentVolumeClaim", "nothing", {"phase": "Lost"}, space)


@call("cluster.patch_status_of", case="of an object as it was read, and of one that has changed since")
def test_a_status_is_patched_if_nobody_changed_the_object(
    kubernetes: KubernetesSide, space: str, account: Account
) -> None:
    cluster = kubernetes.open()
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "namespace": space},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "nobody",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    cluster.create(claim)
    seen = kubernetes.until(lambda: _pending(cluster, space))
    status = {"conditions": [{"type": "Resizing", "status": "True"}]}
    fresh = cluster.patch_status_of(seen, status)
    assert [each["type"] for each in fresh["status"]["conditions"]] == ["Resizing"]
    with account.refused(Conflict):
        cluster.patch_status_of(seen, {"conditions": []})


def _pending(cluster, space):
    """The claim, once its status is written."""
    found = cluster.get("v1", "PersistentVolumeClaim", "claim", space)
    return found if found and found.get("status", {}).get("phase") == "Pending" else None


@call("cluster.delete", case="what it owns goes too, or stays as an orphan")
def test_what_it_owns_goes_too(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": space},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    owner = cluster.create(body)["metadata"]["uid"]
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner}]
    cluster.create(config(space, {}, "child", ownerReferences=owners))
    cluster.delete("apps/v1", "ReplicaSet", "r", space, propagation="Foreground")
    kubernetes.until(lambda: cluster.get("v1", "ConfigMap", "child", space) is None)


@call("cluster.delete", case="a pod that runs goes after its grace period")
def test_a_running_pod_goes(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": space},
            "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1d"]}]},
        }
    )
    kubernetes.until(lambda: phase(cluster, space) == "Running")
    cluster.delete("v1", "Pod", "p", space)
    kubernetes.until(lambda: cluster.get("v1", "Pod", "p", space) is None)


@call("cluster.evict", case="a pod that a disruption budget keeps, then lets go; and nothing")
def test_a_pod_is_evicted_once_its_budget_allows_it(
    kubernetes: KubernetesSide, space: str, account: Account
) -> None:
    cluster = kubernetes.open()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": space, "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1d"]}]},
        }
    )
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": space},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        }
    )
    kubernetes.until(lambda: phase(cluster, space) == "Running")
    with account.refused(Busy):
        cluster.evict("p", space)
    cluster.delete("policy/v1", "PodDisruptionBudget", "keep", space)
    kubernetes.until(lambda: cluster.get("policy/v1", "PodDisruptionBudget", "keep", space) is None)
    cluster.evict("p", space)
    kubernetes.until(lambda: cluster.get("v1", "Pod", "p", space) is None)
    cluster.evict("p", space)


@call("cluster.log", case="a pod that isn't there")
def test_a_log_of_nothing_is_missing(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    with account.refused(Missing):
        kubernetes.open().log("nobody", namespace=space)


@call("cluster.log", case="a pod that ran")
@lacks("kube-apiserver: no kubelet runs containers, so there are no logs")
def test_a_log_is_read(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": space},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox", "command": ["echo"]}],
        },
    }
    cluster.create(pod)
    kubernetes.until(lambda: phase(cluster, space) in ("Running", "Succeeded"))
    assert isinstance(cluster.log("p", "c", space, tail=5), str)


@call("cluster.can", case="the administrator; somebody without rights")
@lacks("sandbox: clusters by kubeconfig have no second user", run=False)
def test_rights_are_reported(kubernetes: KubernetesSide, space: str) -> None:
    assert kubernetes.open().can("create", "secrets", space)
    assert kubernetes.open().can("create", "deployments.apps")
    assert not kubernetes.open("nobody").can("create", "secrets", space)


@call("cluster.can", case="the administrator")
def test_the_administrator_may(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    assert cluster.can("create", "secrets", space) and cluster.can("delete", "deployments.apps")


@call("cluster.list", "cluster.create", case="without the right to")
@lacks("sandbox: clusters by kubeconfig have no second user", run=False)
def test_without_rights_it_is_denied(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    nobody = kubernetes.open("nobody")
    with account.refused(Forbidden):
        nobody.list("v1", "Secret", space)
    with account.refused(Forbidden):
        nobody.create(config(space, {}))


@call("cluster.access", case="a token that isn't accepted: one more try, then denied")
def test_a_wrong_token_is_denied(kubernetes: KubernetesSide, account: Account) -> None:
    cluster = kubernetes.open("admin", token="wrong")
    with account.refused(Denied):
        cluster.list("v1", "Pod", "default")
    assert cluster._transport.tally.requests == 2


@call("cluster.list", case="429 Too Many Requests, 503")
@lacks("kube-apiserver: it can't be told to be busy", run=False)
def test_a_busy_server_is_busy(kubernetes: KubernetesSide, account: Account) -> None:
    cluster = kubernetes.open()
    for status in (429, 503):
        assert kubernetes.world
        kubernetes.world.faults({"api": "kubernetes", "nth": 1, "do": {"status": status, "retry_after": 3}})
        with account.refused(Busy) as failed:
            cluster.list("v1", "ConfigMap", "default")
        assert failed.value.retry_after == 3
        kubernetes.world.clear_faults()


@call("cluster.create", case="a quota is used up")
def test_a_full_quota_is_refused(kubernetes: KubernetesSide, space: str, account: Account) -> None:
    cluster = kubernetes.open()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": space},
            "spec": {"hard": {"pods": "0"}},
        }
    )
    kubernetes.until(
        lambda: (cluster.get("v1", "ResourceQuota", "q", space) or {}).get("status", {}).get("hard")
    )
    with account.refused(Rejected):
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": space},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            }
        )


@call("cluster.version", case="the version of the server")
def test_the_version_is_reported(kubernetes: KubernetesSide) -> None:
    assert kubernetes.open().version().startswith("v1.")


@call("cluster.serves", case="a kind that it knows, one that it doesn't, a group that it doesn't")
def test_served_resources_are_reported(kubernetes: KubernetesSide) -> None:
    cluster = kubernetes.open()
    asked = [("v1", "Secret"), ("apps/v1", "Thing"), ("nonsense.example.com/v1", "Thing")]
    assert [cluster.serves(*each) for each in asked] == [True, False, False]


@call("cluster.now", case="the server's clock")
@lacks("cassettes: the time of an answer is not in them")
def test_the_clock_is_reported(kubernetes: KubernetesSide) -> None:
    now = kubernetes.open().now()
    assert now
    assert abs((now - dt.datetime.now(dt.UTC)).total_seconds()) < 60


@call("cluster.unmanaged", case="what neither the site nor an owner made")
def test_unmanaged_objects_are_reported(kubernetes: KubernetesSide, space: str) -> None:
    cluster = kubernetes.open()
    cluster.create(marked(config(space, {}, "ours"), Mark("mine", "workload/x")))
    cluster.create(config(space, {}, "theirs"))
    assert cluster.unmanaged("mine", space) == (f"ConfigMap {space}/theirs",)


def data_of(cluster, space):
    return (cluster.get("v1", "ConfigMap", "settings", space) or {}).get("data")


def phase(cluster, space):
    return (cluster.get("v1", "Pod", "p", space) or {}).get("status", {}).get("phase")
