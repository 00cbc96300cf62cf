"""Everything that lives in a cluster, on a real kube-apiserver with its controllers; looked at and meddled
with by kubectl.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers
from peers.site_files import SiteFile, all_are, everything
from peers.sites import in_kubernetes, names

import bfinfra
from bfinfra.engine.guard import Allow
from bfinfra.model.errors import BfinfraError

Kubectl = Callable[..., str]


@pytest.fixture
def site(peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """specs/peers/kubernetes.yaml with a site name and namespaces of the test's own."""
    with in_kubernetes(peers, tmp_path) as found:
        yield found


def real(site: SiteFile, name: str) -> str:
    return str(site.given["namespace"][name]["namespace"])


def get(peers: Peers, *words: str) -> Any:
    return json.loads(peers.kubectl("get", *words, "-o", "json"))


def test_apply_makes_what_kubectl_sees_and_a_second_one_writes_nothing(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    training, serving = real(site, "training"), real(site, "serving")
    three = {f"Secret/bitfusion-client-secret-{part}" for part in ("ca.crt", "client.yml", "servers.conf")}
    assert names(peers, site) == {
        f"Namespace/{training}",
        f"Namespace/{serving}",
        *three,
        "Secret/bitfusion-secret",
        "Secret/pull",
        "Job/train",
        "Pod/notebook",
    }
    assert get(peers, "secret", "pull", "-n", training)["type"] == "kubernetes.io/dockerconfigjson"
    assert sorted(get(peers, "secret", "bitfusion-secret", "-n", serving)["data"]) == [
        "ca.crt",
        "client.yaml",
        "servers.conf",
    ]
    assert get(peers, "job", "train", "-n", training)["status"]["succeeded"] == 1
    pod = get(peers, "pod", "notebook", "-n", serving)
    assert (pod["status"]["phase"], pod["spec"]["containers"][0]["command"]) == (
        "Running",
        ["bitfusion", "run", "-n", "1", "--", "jupyter", "lab"],
    )
    again = site.apply()
    all_are(again, "kept")
    assert again.writes == 0
    assert site.changes() == {}


def test_the_pods_get_what_the_site_says(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    pod = get(peers, "job", "train", "-n", real(site, "training"))["spec"]["template"]["spec"]
    env = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert (env["NUM_GPUS"], env["PARTIAL_GPU"], pod["imagePullSecrets"]) == ("2", "0.5", [{"name": "pull"}])
    assert "/etc/bitfusion" in str(pod["containers"][0]["volumeMounts"])


@pytest.mark.parametrize(
    ("address", "change", "fields"),
    [
        ("namespace/training", {"labels": {"team": "b"}}, {"labels.team"}),
        ("registry_credential/pull", {"username": "team-b"}, {"username"}),
        ("token_secret/as-three", {"namespaces": ["training"]}, {"namespaces"}),
        ("workload/notebook", {"gpus": "2"}, {"gpus"}),
    ],
)
def test_one_field_that_changes_is_the_one_that_is_written(
    address: str, change: dict[str, Any], fields: set[str], site: SiteFile
) -> None:
    all_are(site.apply(), "done", "kept")
    kind, _, name = address.partition("/")
    site.given[kind][name] |= change
    found = site.changes()
    assert set(found) == {address}
    assert {field.split(" ")[0] for field in found[address]} >= fields, found
    all_are(site.apply(), "done", "kept")
    assert site.changes() == {}


def label(peers: Peers, site: SiteFile) -> None:
    peers.kubectl("label", "namespace", real(site, "training"), "team=theirs", "--overwrite")


def lose_a_secret(peers: Peers, site: SiteFile) -> None:
    peers.kubectl("delete", "secret", "bitfusion-secret", "-n", real(site, "serving"))


def spoil_a_secret(peers: Peers, site: SiteFile) -> None:
    peers.kubectl(
        "patch",
        "secret",
        "bitfusion-client-secret-client.yml",
        "-n",
        real(site, "serving"),
        "--type=merge",
        "-p",
        '{"data": {"client.yaml": "eA=="}}',
    )


def add_to_a_secret(peers: Peers, site: SiteFile) -> None:
    peers.kubectl(
        "patch",
        "secret",
        "pull",
        "-n",
        real(site, "training"),
        "--type=merge",
        "-p",
        '{"data": {".dockerconfigjson": "e30="}}',
    )


def lose_a_pod(peers: Peers, site: SiteFile) -> None:
    peers.kubectl("delete", "pod", "notebook", "-n", real(site, "serving"))


@pytest.mark.parametrize(
    ("meddle", "address"),
    [
        (label, "namespace/training"),
        (lose_a_secret, "token_secret/as-one"),
        (spoil_a_secret, "token_secret/as-three"),
        (add_to_a_secret, "registry_credential/pull"),
        (lose_a_pod, "workload/notebook"),
    ],
)
def test_what_kubectl_changes_is_drift_and_is_put_right(
    meddle: Callable[[Peers, SiteFile], None], address: str, site: SiteFile, peers: Peers
) -> None:
    all_are(site.apply(), "done", "kept")
    before = names(peers, site)
    meddle(peers, site)
    assert set(site.changes()) == {address}
    who = {each.by for each in site.drift().found}
    assert who == (
        {""}
        if meddle in (lose_a_secret, lose_a_pod)
        else {"kubectl-label" if meddle is label else "kubectl-patch"}
    )
    all_are(site.apply(), "done", "kept")
    assert names(peers, site) == before
    assert site.changes() == {}


def test_a_probe_of_a_network_path_runs_where_pod_security_is_restricted(
    site: SiteFile, peers: Peers
) -> None:
    for kind in ("workload", "token_secret", "registry_credential"):
        del site.given[kind]
    space = real(site, "training")
    site.given["namespace"]["training"]["pod_security"] = {"enforce": "restricted"}
    (cluster,) = site.given["kubernetes_cluster"]
    site.given["network_path"] = {
        "ways": {"cluster": cluster, "namespace": "training", "addresses": ["192.0.2.1"], "probe": {}}
    }
    all_are(site.apply(), "done", "kept")
    assert (
        get(peers, "job", "bfinfra-path-ways", "-n", space)["status"]["succeeded"] == 1
    )  # kwok runs nothing: that a pod was let in is what this shows
    again = site.apply()
    all_are(again, "kept")
    assert again.writes == 0
    site.given["network_path"]["ways"]["ports"] = [56001]
    assert "paths" in {field.split(" ")[0] for field in site.changes()["network_path/ways"]}
    all_are(site.apply(), "done", "kept")
    assert get(peers, "job", "bfinfra-path-ways", "-n", space)["spec"]["template"]["spec"]["containers"][0][
        "command"
    ][5:] == ["192.0.2.1:56001"]
    all_are(site.apply(destroy=True), "done", "kept")
    assert names(peers, site) == set()


def test_a_job_that_ran_and_was_cleaned_up_is_no_drift(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    peers.kubectl("delete", "job", "train", "-n", real(site, "training"))
    assert site.changes() == {}


def test_labels_of_others_stay(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    peers.kubectl("label", "namespace", real(site, "training"), "theirs=x")
    assert site.changes() == {}
    site.given["namespace"]["training"]["labels"]["team"] = "b"
    all_are(site.apply(), "done", "kept")
    assert get(peers, "namespace", real(site, "training"))["metadata"]["labels"]["theirs"] == "x"


def test_destroy_removes_all_of_it(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    all_are(site.apply(destroy=True), "done", "kept")
    assert names(peers, site) == set()


def test_a_namespace_with_other_peoples_things_wants_its_name_typed(site: SiteFile, peers: Peers) -> None:
    all_are(site.apply(), "done", "kept")
    peers.kubectl("create", "configmap", "theirs", "-n", real(site, "serving"))
    peers.kubectl("create", "deployment", "theirs", "-n", real(site, "serving"), "--image=x")
    with pytest.raises(BfinfraError, match="theirs"):
        bfinfra.destroy(site.load(), approve=lambda _: Allow(every_delete=True))
    assert get(peers, "deployment", "theirs", "-n", real(site, "serving"))
    all_are(bfinfra.destroy(site.load(), approve=everything), "done", "kept")


def test_without_rights_the_site_is_unreadable_and_nothing_is_written(site: SiteFile, peers: Peers) -> None:
    site.put("admin.kubeconfig", (peers.kubeconfig.parent / "nobody.kubeconfig").read_text())
    found = site.plan()
    assert any("forbidden" in why.lower() for why in found.unreadable.values()), found.unreadable
    with pytest.raises(BfinfraError, match="can't be read"):
        site.apply()
    site.put("admin.kubeconfig", peers.kubeconfig.read_text())


def test_an_object_of_somebody_else_is_in_the_way(site: SiteFile, peers: Peers) -> None:
    own = {key: site.given.pop(key) for key in ("workload", "token_secret", "registry_credential")}
    all_are(site.apply(), "done", "kept")
    peers.kubectl(
        "create", "secret", "generic", "bitfusion-secret", "-n", real(site, "serving"), "--from-literal=x=y"
    )
    site.given |= own
    problems = site.plan().problems
    assert any("adopt" in str(problem) for problem in problems), problems
    peers.kubectl("delete", "secret", "bitfusion-secret", "-n", real(site, "serving"))
