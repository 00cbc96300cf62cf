"""Objects from files: their order, what is drift and whose, what goes, what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.at_cluster import Site
from kinds.lifecycle import SPECS
from kinds.unmanaged import Entry, Look, kube_object
from kube_api import somebody_patches
from rights.given import other

from bfinfra.backends.kubernetes.marks import SITE
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

QUEUES = "/apis/sched.example.com/v1/namespaces/default/queues"
ADDRESS = "manifests/queues"
FIVE = "5 objects (1 ServiceAccount, 1 ConfigMap, 1 ClusterRole, 1 ClusterRoleBinding, 1 Deployment)"
ALL = (
    "7 objects (1 CustomResourceDefinition, 1 ServiceAccount, 1 ConfigMap, 1 ClusterRole, "
    "1 ClusterRoleBinding, 1 Deployment, 1 Queue)"
)
pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]


@pytest.fixture
def site(api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(SPECS / "manifests/queues", tmp_path / "queues")
    found = Site(tmp_path, api, "poc")
    found.resources = {"manifests": {"queues": {"cluster": "k", "files": ["queues"]}}}
    return found


def edit(site: Site, file: str, old: str, new: str) -> None:
    path = site.folder / "queues" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def differing(site: Site) -> dict[str, tuple[Any, Any]]:
    return {change.field: (change.now, change.wanted) for change in site.item(ADDRESS).changes}


def test_definitions_come_first_and_objects_of_them_last(site):
    titles = site.titles(ADDRESS)
    assert titles == [
        "begin the record bfinfra-manifests-queues in namespace default of k",
        "create CustomResourceDefinition queues.sched.example.com in k, and wait until it serves them",
        f"create {FIVE} in k, and wait until they are ready",
        "create Queue default/research in k",
        "note in bfinfra-manifests-queues what was applied",
    ]


def test_every_object_is_marked_in_the_call_that_creates_it(site, cluster):
    site.applied()
    for api, kind, name, space in (
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "queues.sched.example.com", ""),
        ("apps/v1", "Deployment", "queues", "default"),
        ("sched.example.com/v1", "Queue", "research", "default"),
    ):
        metadata = cluster.get(api, kind, name, space)["metadata"]
        assert metadata["labels"]["bfinfra.io/site"] == "poc"
        assert "address=manifests/queues " in metadata["annotations"]["bfinfra.io/mark"]


def test_what_others_change_of_our_fields_is_drift_with_its_writer_and_what_they_add_is_not(site, cluster):
    site.applied()
    change = {"data": {"policy": "greedy", "theirs": "1"}, "metadata": {"labels": {"team": "a"}}}
    somebody_patches(cluster, "namespaces/default/configmaps/queues", change)
    assert differing(site) == {"ConfigMap default/queues.data.policy": ("greedy", "fair")}
    assert "somebody" in str(site.drift().found)
    site.applied()
    live = cluster.get("v1", "ConfigMap", "queues", "default")
    assert live["data"] == {"policy": "fair", "log.level": "info", "theirs": "1"}
    assert live["metadata"]["labels"]["team"] == "a"
    assert site.item(ADDRESS).steps == ()


def test_a_mapping_of_which_somebody_took_every_field_is_drift(site, cluster):
    site.applied()
    somebody_patches(
        cluster, "namespaces/default/configmaps/queues", {"data": {"policy": "a", "log.level": "b"}}
    )
    assert differing(site) == {
        "ConfigMap default/queues.data.policy": ("a", "fair"),
        "ConfigMap default/queues.data.log.level": ("b", "info"),
    }
    site.applied()
    assert cluster.get("v1", "ConfigMap", "queues", "default")["data"] == {
        "policy": "fair",
        "log.level": "info",
    }


def test_a_removed_field_and_a_deleted_object_come_back(site, cluster):
    site.applied()
    body = {"data": {"log.level": None}}
    somebody_patches(cluster, "namespaces/default/configmaps/queues", body)
    cluster.delete("sched.example.com/v1", "Queue", "research", "default")
    assert differing(site) == {
        "ConfigMap default/queues.data.log.level": (None, "info"),
        "Queue default/research": (None, "as rendered"),
    }
    site.applied()
    assert cluster.get("sched.example.com/v1", "Queue", "research", "default")["spec"] == {"weight": 2}


def test_an_account_that_lacks_comes_before_pods_are_made_anew_with_it(site, cluster):
    site.applied()
    cluster.delete("v1", "ServiceAccount", "queues", "default")
    edit(site, "operator.yaml", "replicas: 1", "replicas: 2")
    titles = [title for title in site.titles(ADDRESS) if "ServiceAccount" in title or "Deployment" in title]
    assert [title.split()[:2] for title in titles] == [["create", "ServiceAccount"], ["change", "Deployment"]]


def test_what_a_server_writes_in_another_form_is_no_drift(site, cluster):
    site.applied()
    live = cluster.get("apps/v1", "Deployment", "queues", "default")
    asked = live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert asked["memory"] == "64Mi"
    assert site.item(ADDRESS).steps == ()


def test_a_changed_rendering_shows_its_fields_and_removes_what_it_no_longer_says(site, cluster):
    site.applied()
    edit(site, "operator.yaml", "--policy=fair", "--policy=greedy")
    edit(site, "operator.yaml", ", log.level: info", "")
    found = differing(site)
    assert ("Deployment default/queues.spec.template.spec.containers.operator.args.0") in found
    site.applied()
    assert cluster.get("v1", "ConfigMap", "queues", "default")["data"] == {"policy": "fair"}
    assert site.item(ADDRESS).steps == ()


def test_an_object_that_is_no_longer_rendered_goes(site, cluster):
    site.applied()
    (site.folder / "queues/queue.yaml").unlink()
    assert site.titles(ADDRESS)[0] == (
        "delete Queue default/research from k, which the rendering no longer has"
    )
    site.applied()
    assert cluster.get("sched.example.com/v1", "Queue", "research", "default") is None


def test_a_definition_goes_only_if_that_is_allowed(site):
    site.applied()
    (site.folder / "queues/queue.yaml").unlink()
    (site.folder / "queues/definition.yaml").unlink()
    assert [step.destructive for step in site.item(ADDRESS).steps] == [False, True, False]


def test_a_field_that_can_not_change_replaces_its_object_alone(site, cluster):
    site.applied()
    before = cluster.get("v1", "ConfigMap", "queues", "default")["metadata"]["uid"]
    edit(site, "operator.yaml", "kind: ClusterRole, name: queues}", "kind: ClusterRole, name: view}")
    first = site.item(ADDRESS).steps[0]
    assert first.destructive
    assert "ClusterRoleBinding queues" in first.title()
    site.applied()
    assert (
        cluster.get("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "queues")["roleRef"]["name"]
        == "view"
    )
    assert cluster.get("v1", "ConfigMap", "queues", "default")["metadata"]["uid"] == before


def test_the_content_of_a_secret_is_in_no_plan(site):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"a": "hush-hush"},
    }
    path = site.folder / "queues/secret.yaml"
    path.write_text(yaml.safe_dump(secret))
    site.applied()
    path.write_text(yaml.safe_dump({**secret, "stringData": {"a": "hush-hush-2"}}))
    assert differing(site)["Secret default/s.data.a"] == ("another value", "as in the manifest")
    assert "hush" not in str(site.plan())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: Job\nmetadata: {name: x}\n", "a document has no apiVersion and kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: x}\n", "a Pod has no metadata.name"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: queues}\n",
            "ConfigMap default/queues is there twice",
        ),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n", "it has the namespace default"),
        (
            'apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, annotations: {"helm.sh/hook": pre-upgrade}}\n',
            "Helm would run hooks: Job/x (pre-upgrade); write the name of each under run_hooks or under skip_hooks",
        ),
        ("apiVersion: a.example.com/v1\nkind: Thing\nmetadata: {name: x}\n", "the cluster has no Thing"),
        ("a: b: c", "it is not YAML"),
    ],
)
def test_a_rendering_that_can_not_be_applied_is_refused_before_the_first_write(site, text, why):
    (site.folder / "queues/more.yaml").write_text(text)
    (problem,) = site.plan().problems
    assert why in str(problem)


def test_hooks_that_the_site_names_are_left_out(site):
    hook = 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, annotations: {"helm.sh/hook": pre-delete}}\n'
    (site.folder / "queues/more.yaml").write_text(hook)
    site.resources["manifests"]["queues"]["skip_hooks"] = ["Job/x"]
    assert not site.plan().problems


def hook(name: str, when: str, **annotations: str) -> dict[str, Any]:
    notes = {"helm.sh/hook": when, **{f"helm.sh/hook-{key}": value for key, value in annotations.items()}}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "tool:1", "command": ["go", name]}],
    }
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    metadata = {"name": name, "annotations": notes}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.fixture
def hooked(site: Site) -> Site:
    every = [
        hook("second", "pre-install,pre-upgrade", weight="2", **{"delete-policy": "hook-succeeded"}),
        hook("first", "pre-install", weight="-1"),
        hook("last", "post-install,post-upgrade"),
    ]
    (site.folder / "queues/hooks.yaml").write_text(yaml.safe_dump_all(every))
    site.resources["manifests"]["queues"]["run_hooks"] = ["Job/first", "Job/second", "Job/last"]
    return site


def hook_titles(site: Site) -> list[str]:
    return [title for title in site.titles(ADDRESS) if "hook" in title]


def jobs(cluster: Any) -> dict[str, str]:
    return {
        job["metadata"]["name"]: job["metadata"]["uid"] for job in cluster.list("batch/v1", "Job", "default")
    }


def test_hooks_that_the_site_lets_run_are_steps_in_helms_order(hooked):
    assert hook_titles(hooked) == [
        "run the chart's hook Job default/first in k before the other objects, and wait until it has finished",
        "run the chart's hook Job default/second in k before the other objects, and wait until it has finished",
        "note in bfinfra-manifests-queues that the hooks before the other objects have run",
        "delete Job default/second from k, which a hook of the chart left",
        f"wait until {ALL} in k are ready, before hooks run",
        "run the chart's hook Job default/last in k after the other objects, and wait until it has finished",
        "note in bfinfra-manifests-queues that the hooks after the other objects have run",
    ]
    assert differing(hooked)["Job default/first"] == (None, "runs: pre-install: tool:1 go first")


def test_hooks_run_once_for_a_rendering_and_those_of_upgrades_for_the_next(hooked, cluster):
    hooked.applied()
    before = jobs(cluster)
    assert {*before} == {"first", "last"}, "the policy of the second is hook-succeeded"
    assert hooked.item(ADDRESS).steps == ()
    somebody_patches(cluster, "namespaces/default/configmaps/queues", {"data": {"policy": "greedy"}})
    assert hook_titles(hooked) == [], "drift is no upgrade"
    edit(hooked, "operator.yaml", "--policy=fair", "--policy=greedy")
    hooked.applied()
    after = jobs(cluster)
    assert {*after} == {"first", "last"}
    assert (after["first"] == before["first"], after["last"] == before["last"]) == (True, False)
    hooked.applied(destroy=True)
    assert jobs(cluster) == {}


def test_a_hook_that_does_not_finish_holds_the_objects_and_runs_again_once_it_is_corrected(hooked, cluster):
    path = hooked.folder / "queues/hooks.yaml"
    good = path.read_text()
    path.write_text(good.replace("image: tool:1", "image: closed.test/tool:1"))
    ended = hooked.apply(deadline=0.1).endings
    assert {str(key): str(each.ending) for key, each in ended.items()}[ADDRESS] == "still-waiting"
    assert cluster.get("apps/v1", "Deployment", "queues", "default") is None
    assert hook_titles(hooked)[0] == "wait until the chart's hook Job default/first in k has finished"
    path.write_text(good)
    assert hook_titles(hooked)[:2] == [
        "delete Job default/first from k, which a hook of the chart left",
        "run the chart's hook Job default/first in k before the other objects, and wait until it has finished",
    ]
    hooked.applied()


def test_a_job_of_others_is_not_replaced_by_a_hook(hooked, cluster):
    cluster.create({**hook("first", ""), "metadata": {"name": "first", "namespace": "default"}})
    (problem,) = hooked.plan(adopt=frozenset({Key("manifests", "queues")})).problems
    assert "the cluster has Job default/first already, which a hook would replace" in str(problem)


@pytest.mark.parametrize(
    ("when", "named", "why"),
    [
        (
            "pre-rollback",
            ["Job/x"],
            "bfinfra only runs hooks of installs, upgrades and removals, and this is one of pre-rollback; skip it",
        ),
        ("pre-delete", ["Job/y"], "Helm would run hooks: Job/x (pre-delete: tool:1 go x)"),
    ],
)
def test_hooks_of_rollbacks_can_not_run_and_all_hooks_have_to_be_named(site, when, named, why):
    (site.folder / "queues/hooks.yaml").write_text(yaml.safe_dump(hook("x", when)))
    site.resources["manifests"]["queues"]["run_hooks"] = named
    (problem,) = site.plan().problems
    assert why in str(problem)


def test_a_secret_of_a_removal_is_refused(site):
    secret = {**hook("x", "pre-delete"), "apiVersion": "v1", "kind": "Secret", "spec": None}
    (site.folder / "queues/hooks.yaml").write_text(yaml.safe_dump(secret))
    site.resources["manifests"]["queues"]["run_hooks"] = ["Secret/x"]
    (problem,) = site.plan().problems
    assert "Secret/x can't run: until the removal its content would be readable in the record" in str(problem)


@pytest.fixture
def leaving(site: Site) -> Site:
    """With hooks of the removal; one of them is one of the installation, too."""
    every = [
        hook("drain", "pre-delete", weight="1"),
        hook("save", "post-install,pre-delete", weight="-1"),
        hook("sweep", "post-delete"),
    ]
    (site.folder / "queues/hooks.yaml").write_text(yaml.safe_dump_all(every))
    site.resources["manifests"]["queues"]["run_hooks"] = ["Job/drain", "Job/save", "Job/sweep"]
    return site


OF_REMOVAL = [
    "delete Job default/save from k, which a hook of the chart left",
    "run the chart's pre-delete hook Job default/save in k, and wait until it has finished",
    "run the chart's pre-delete hook Job default/drain in k, and wait until it has finished",
    "note in bfinfra-manifests-queues that the pre-delete hooks have run",
    "delete Job default/drain from k, which a hook of the chart left",
    "delete Job default/save from k, which a hook of the chart left",
    "run the chart's post-delete hook Job default/sweep in k, and wait until it has finished",
    "note in bfinfra-manifests-queues that the post-delete hooks have run",
    "delete Job default/sweep from k, which a hook of the chart left",
]


def test_hooks_of_the_removal_run_around_it_in_helms_order_without_the_chart(leaving, cluster):
    leaving.applied()
    assert {*jobs(cluster)} == {"save"}
    assert leaving.item(ADDRESS).steps == ()
    del leaving.resources["manifests"]
    shutil.rmtree(leaving.folder / "queues")
    steps = [step.title() for step in leaving.item(ADDRESS).steps]
    assert [title for title in steps if "hook" in title] == OF_REMOVAL
    assert steps.index(OF_REMOVAL[5]) + 1 < steps.index(OF_REMOVAL[6]), "the objects go in between"
    assert steps[-1].startswith("delete the record ")
    leaving.applied()
    assert jobs(cluster) == {}
    assert cluster.get("apps/v1", "Deployment", "queues", "default") is None
    assert cluster.get("v1", "ConfigMap", "bfinfra-manifests-queues", "default") is None


def test_a_hook_of_the_removal_that_does_not_finish_holds_the_objects(leaving, cluster):
    path = leaving.folder / "queues/hooks.yaml"
    path.write_text(path.read_text().replace("image: tool:1", "image: closed.test/tool:1", 1))
    leaving.applied()
    ended = leaving.apply(destroy=True, deadline=0.5).endings
    assert {str(key): str(each.ending) for key, each in ended.items()}[ADDRESS] == "still-waiting"
    assert cluster.get("apps/v1", "Deployment", "queues", "default") is not None
    path.write_text(path.read_text().replace("image: closed.test/tool:1", "image: tool:1"))
    leaving.applied()
    assert jobs(cluster) == {}, "what the ended removal left is gone"
    assert leaving.item(ADDRESS).steps == (), "the ended removal leaves nothing to do"
    leaving.applied(destroy=True)
    assert jobs(cluster) == {}


def test_hooks_of_the_removal_that_the_site_no_longer_names_are_forgotten(leaving, cluster):
    leaving.applied()
    it = leaving.resources["manifests"]["queues"]
    it["skip_hooks"], it["run_hooks"] = it["run_hooks"], []
    assert leaving.titles(ADDRESS)[-1] == "note in bfinfra-manifests-queues what was applied"
    leaving.applied()
    leaving.applied(destroy=True)
    assert cluster.get("v1", "ConfigMap", "bfinfra-manifests-queues", "default") is None


def test_a_hook_that_the_chart_does_not_have_is_named(site):
    site.resources["manifests"]["queues"]["run_hooks"] = ["Job/y"]
    (problem,) = site.plan().problems
    assert "it has no hook Job/y, which run_hooks names" in str(problem)


def test_objects_can_not_move(site):
    site.applied()
    site.resources["manifests"]["queues"]["namespace"] = "kube-public"
    (problem,) = site.plan().problems
    assert "its objects can't move from default to kube-public" in str(problem)


def test_everything_goes_in_the_reverse_order(site, cluster):
    site.applied()
    steps = site.item(ADDRESS, destroy=True).steps
    assert [step.title().split(" from ")[0] for step in steps] == [
        "delete Queue default/research",
        "delete 5 objects (1 Deployment, 1 ClusterRoleBinding, 1 ClusterRole, 1 ConfigMap, 1 ServiceAccount)",
        "delete CustomResourceDefinition queues.sched.example.com",
        "delete the record bfinfra-manifests-queues",
    ]
    site.applied(destroy=True)
    assert cluster.list("v1", "ConfigMap", labels="bfinfra.io/site=poc") == []


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return kube_object(other(sandbox), "/api/v1/namespaces/default/serviceaccounts", body)


def theirs(sandbox: Running) -> object:
    body = {"apiVersion": "sched.example.com/v1", "kind": "Queue", "metadata": {"name": "theirs"}}
    return other(sandbox).call("POST", QUEUES, body)


UNMANAGED = Entry(at="queues", plant=unmanaged, inside=(theirs, "Queue default/theirs"))


LABEL = f"ConfigMap default/queues.metadata.labels.{SITE}"


def test_an_object_without_the_sites_label_gets_it_again(site, cluster):
    site.applied()
    somebody_patches(cluster, "namespaces/default/configmaps/queues", {"metadata": {"labels": {SITE: None}}})
    assert differing(site) == {LABEL: (None, "poc")}
    site.applied()
    assert not site.drift().found


def test_an_object_without_the_sites_label_goes_with_the_others(site, cluster):
    site.applied()
    somebody_patches(cluster, "namespaces/default/configmaps/queues", {"metadata": {"labels": {SITE: None}}})
    site.applied(destroy=True)
    assert not cluster.list("v1", "ConfigMap", "default", name="queues")


def test_a_record_of_an_earlier_version_is_up_to_date(site, cluster):
    """It notes types alone."""
    site.applied()
    somebody_patches(
        cluster, "namespaces/default/configmaps/bfinfra-manifests-queues", {"data": {"objects": None}}
    )
    assert not site.item(ADDRESS).steps
