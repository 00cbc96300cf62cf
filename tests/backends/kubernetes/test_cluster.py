from __future__ import annotations

import json

import pytest
import yaml
from kube_api import somebody_patches

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.backends.kubernetes.marks import mark_of, marked, selector
from bfinfra.backends.kubernetes.owned import claimed, owned
from bfinfra.backends.transport import Transport, WriteRefused
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Busy, Conflict, Denied, Exists, Missing, Rejected, RemoteError
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret, Sources


def config_map(space, data, name="settings", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": space, **metadata},
        "data": data,
    }


def test_what_is_created_is_read_back_whole(cluster, space):
    cluster.create(config_map(space, {"a": "1"}, annotations={"note": "x"}))
    found = cluster.get("v1", "ConfigMap", "settings", space)
    assert found["data"] == {"a": "1"}
    assert found["metadata"]["annotations"] == {"note": "x"}


def test_an_absent_object_is_none_and_deleting_it_is_done_already(cluster, space):
    assert cluster.get("v1", "ConfigMap", "nothing", space) is None
    cluster.delete("v1", "ConfigMap", "nothing", space)


@pytest.mark.parametrize("count", [2, 20])
def test_objects_in_few_places_or_many_are_all_found(cluster, space, count, monkeypatch):
    monkeypatch.setattr("bfinfra.backends.kubernetes.connection.PAGES", (1,))
    cluster.create(config_map(space, {"a": "1"}, name="place-1"))
    cluster.create(config_map(space, {"b": "1"}, name="elsewhere"))
    for within in ("", space):
        (found,) = cluster.find("v1", "ConfigMap", [(space, f"place-{n}") for n in range(count)], within)
        assert (found["kind"], found["metadata"]["name"], found["data"]) == (
            "ConfigMap",
            "place-1",
            {"a": "1"},
        )
    (found,) = cluster.find("v1", "Namespace", [("", name) for name in (space, "no-1", "no-2", "no-3")])
    assert found["metadata"]["name"] == space


def test_many_places_of_a_kind_that_the_cluster_does_not_know_are_refused(cluster, space):
    with pytest.raises(NotServed):
        cluster.find("nonsense.example.com/v1", "Thing", [(space, f"x-{n}") for n in range(9)])


def test_a_kind_that_the_cluster_does_not_know_is_no_absent_object(cluster):
    with pytest.raises(NotServed, match="does not know this kind"):
        cluster.get("nonsense.example.com/v1", "Thing", "x")
    with pytest.raises(NotServed):
        cluster.list("nonsense.example.com/v1", "Thing")


def test_creating_is_exclusive(cluster, space):
    cluster.create(config_map(space, {"a": "1"}))
    with pytest.raises(Exists):
        cluster.create(config_map(space, {"a": "2"}))
    assert cluster.get("v1", "ConfigMap", "settings", space)["data"] == {"a": "1"}


def test_the_name_of_what_is_being_deleted_is_free_later(cluster, space):
    cluster.create(config_map(space, {"a": "1"}, finalizers=["example.com/hold"]))
    cluster.delete("v1", "ConfigMap", "settings", space)
    with pytest.raises(Busy, match="apply again once it is gone") as caught:
        cluster.create(config_map(space, {"a": "2"}))
    assert (
        caught.value.problems[0].why == 'object is being deleted: configmaps "settings" already exists (409)'
    )
    cluster.patch("v1", "ConfigMap", "settings", {"metadata": {"finalizers": None}}, space)
    assert cluster.create(config_map(space, {"a": "2"}))["data"] == {"a": "2"}


def test_applying_changes_adds_and_removes_what_create_once_set(cluster, space):
    cluster.create(config_map(space, {"keep": "1", "drop": "1"}))
    cluster.apply(config_map(space, {"keep": "2", "add": "1"}))
    assert cluster.get("v1", "ConfigMap", "settings", space)["data"] == {"keep": "2", "add": "1"}
    cluster.apply(config_map(space, {"keep": "2"}))
    assert cluster.get("v1", "ConfigMap", "settings", space)["data"] == {"keep": "2"}


def test_applying_leaves_what_others_set(cluster, space):
    cluster.create(config_map(space, {"mine": "1"}))
    somebody_patches(cluster, f"namespaces/{space}/configmaps/settings", {"data": {"theirs": "1"}})
    cluster.apply(config_map(space, {"mine": "2"}))
    assert cluster.get("v1", "ConfigMap", "settings", space)["data"] == {"mine": "2", "theirs": "1"}


def test_a_field_that_somebody_else_took_is_a_conflict_unless_forced(cluster, space):
    cluster.apply(config_map(space, {"a": "1"}))
    somebody_patches(cluster, f"namespaces/{space}/configmaps/settings", {"data": {"a": "9"}})
    assert owned(cluster.get("v1", "ConfigMap", "settings", space)).get("data", {}) == {}
    with pytest.raises(Conflict, match="somebody"):
        cluster.apply(config_map(space, {"a": "1"}))
    cluster.apply(config_map(space, {"a": "1"}), force=True)
    assert owned(cluster.get("v1", "ConfigMap", "settings", space))["data"] == {"a": "1"}


def test_a_patch_with_an_old_resource_version_is_a_conflict(cluster, space):
    before = cluster.create(config_map(space, {"a": "1"}))
    cluster.patch("v1", "ConfigMap", "settings", {"data": {"a": "2"}}, space)
    with pytest.raises(Conflict):
        old = {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
        cluster.patch("v1", "ConfigMap", "settings", old, space)


def test_a_list_selects_by_the_sites_label_across_namespaces_and_keeps_the_kind(cluster, space):
    mark = Mark("lists", "workload/x").committed({"gpus": 2})
    cluster.create(marked(config_map(space, {}, "ours"), mark))
    cluster.create(config_map(space, {}, "theirs"))
    (found,) = [
        o
        for o in cluster.list("v1", "ConfigMap", labels=selector("lists"))
        if o["metadata"]["namespace"] == space
    ]
    assert (found["kind"], found["metadata"]["name"], mark_of(found)) == ("ConfigMap", "ours", mark)


def test_long_lists_come_whole(cluster, space, monkeypatch):
    monkeypatch.setattr("bfinfra.backends.kubernetes.connection.PAGES", (3,))
    for number in range(8):
        cluster.create(config_map(space, {}, f"n{number}", labels={"page": "me"}))
    assert {o["metadata"]["name"] for o in cluster.list("v1", "ConfigMap", space, "page=me")} == {
        f"n{n}" for n in range(8)
    }


def test_kinds_outside_the_table_are_found_by_discovery(cluster, space):
    assert cluster.list("coordination.k8s.io/v1", "Lease", space) == []


def test_an_invalid_object_is_rejected_with_the_servers_reason(cluster, space):
    with pytest.raises(Rejected, match=r"Invalid|invalid"):
        cluster.create(config_map(space, {}, "Not A Name"))


def test_messages_about_a_secret_never_hold_its_value(cluster, space):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": space},
        "data": {"password": "not-base64-hunter2!"},
    }
    with pytest.raises(RemoteError) as failed:
        cluster.create(secret)
    assert "hunter2" not in str(failed.value)


def test_strangers_are_what_neither_the_site_nor_an_owner_made(cluster, space):
    cluster.create(marked(config_map(space, {}, "ours"), Mark("mine", "workload/x")))
    cluster.create(config_map(space, {}, "theirs"))
    assert cluster.unmanaged("mine", space) == (f"ConfigMap {space}/theirs",)


def test_the_administrator_may_and_the_version_is_reported(cluster, space):
    assert cluster.can("create", "secrets", space)
    assert cluster.version().startswith("v1.")


def test_a_log_of_a_pod_that_is_not_there_is_missing(cluster, space):
    with pytest.raises(Missing):
        cluster.log("nobody", namespace=space)


def test_a_token_that_is_not_accepted_is_denied_after_one_more_try(api, clusters):
    wrong = clusters.at(Endpoint(kubeconfig=api.secret(token="wrong")))
    with pytest.raises(Denied, match="login is not accepted"):
        wrong.list("v1", "Pod")


def test_on_a_read_only_transport_nothing_is_written(api):
    transport = Transport(read_only=True)
    cluster = Clusters(transport, None).at(Endpoint(kubeconfig=api.secret()))
    assert cluster.list("v1", "Namespace")
    assert cluster.can("get", "pods") in (True, False)
    for write in (
        lambda: cluster.create(config_map("default", {})),
        lambda: cluster.apply(config_map("default", {})),
        lambda: cluster.patch("v1", "ConfigMap", "x", {}),
        lambda: cluster.delete("v1", "ConfigMap", "x"),
    ):
        with pytest.raises(WriteRefused):
            write()
    assert transport.tally.writes == 0
    transport.close()


@pytest.mark.parametrize("name", ["", "a/b", "..", "a%2Fb"])
def test_a_name_that_leads_elsewhere_is_refused_before_it_is_sent(cluster, name):
    for ask in (cluster.get, cluster.delete):
        with pytest.raises(Rejected, match="not a name"):
            ask("v1", "Pod", name)
    with pytest.raises(Rejected, match="not a name"):
        cluster.log(name)


def test_in_the_sandbox_a_kubeconfig_leads_where_it_listens():
    cluster = {"server": "https://k8s.example.com:6443", "certificate-authority-data": "QQ=="}
    config = {"clusters": [{"name": "k", "cluster": cluster}]}
    transport = Transport(
        route=lambda host, port: ("127.0.0.1", 40001) if (host, port) == ("k8s.example.com", 6443) else None
    )
    endpoint = Endpoint(kubeconfig=Secret("env", "CONFIG", Sources(env={"CONFIG": json.dumps(config)})))
    (found,) = yaml.safe_load(Clusters(transport, None).kubeconfig(endpoint))["clusters"]
    assert found["cluster"] == {
        **cluster,
        "server": "https://127.0.0.1:40001",
        "tls-server-name": "k8s.example.com",
    }


@pytest.mark.parametrize("server_version", ["v1.17.17", "v1.18.0"])
def test_a_server_that_notes_no_writer_before_the_first_apply_still_takes_away_what_we_made(
    server_version, sandbox_api, clusters
):
    cluster = clusters.at(Endpoint(kubeconfig=sandbox_api.secret()))
    cluster.create(config_map("default", {"keep": "1", "drop": "1"}))
    somebody_patches(cluster, "namespaces/default/configmaps/settings", {"data": {"theirs": "1"}})
    cluster.apply(config_map("default", {"keep": "1"}))
    assert cluster.get("v1", "ConfigMap", "settings", "default")["data"] == {"keep": "1", "theirs": "1"}


@pytest.mark.parametrize(("writes", "stands"), [(2, True), (5, False)])
@pytest.mark.parametrize("server_version", ["v1.17.17"])
def test_what_a_controller_writes_into_a_new_object_does_not_fail_its_making(
    server_version, writes, stands, sandbox_api, clusters, monkeypatch
):
    cluster = clusters.at(Endpoint(kubeconfig=sandbox_api.secret()))
    asked = []

    def claimed_late(live):
        asked.append(live)
        if len(asked) <= writes:
            somebody_patches(
                cluster, "namespaces/default/configmaps/settings", {"data": {"theirs": str(len(asked))}}
            )
        return claimed(live)

    monkeypatch.setattr("bfinfra.backends.kubernetes.cluster.claimed", claimed_late)
    if not stands:
        with pytest.raises(Conflict):
            cluster.create(config_map("default", {"keep": "1", "drop": "1"}))
        return
    cluster.create(config_map("default", {"keep": "1", "drop": "1"}))
    cluster.apply(config_map("default", {"keep": "1"}))
    assert cluster.get("v1", "ConfigMap", "settings", "default")["data"] == {"keep": "1", "theirs": "2"}
