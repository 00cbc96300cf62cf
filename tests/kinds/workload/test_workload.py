from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from at_cluster import Site
from kinds.lifecycle import EXAMPLES
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import other
from waiting import until

from bfinfra.engine import guard
from bfinfra.kinds.cluster.base.pods import ran
from bfinfra.kinds.cluster.token_secret.spec import FORMS
from bfinfra.kinds.cluster.workload import manifests
from bfinfra.kinds.cluster.workload.compare import differing
from bfinfra.kinds.cluster.workload.decide import _kept
from bfinfra.kinds.cluster.workload.render import Values, render
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.kinds.cluster.workload.state import Record, State, Thing
from bfinfra.model.compare import Change
from bfinfra.model.errors import Unsafe
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Action
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

DOCUMENT = Path(__file__).parents[3] / "specs" / "manifests" / "pytorch-mock-bitfusion.yaml"
ADDRESS = "workload/w"


def job(**changes):
    template = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "a", "image": "busybox", "command": ["python", "model.py"]}],
        }
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"backoffLimit": 0, "template": template, **changes},
    }


@pytest.fixture
def site(tmp_path, api, space):
    made = Site(tmp_path, api)
    made.resources = {
        "workload": {"w": {"cluster": "k", "namespace": space, "manifest": "w.yaml", "wait": "finished"}}
    }
    made.manifest = lambda *objects: (tmp_path / "w.yaml").write_text(yaml.safe_dump_all(objects))
    made.manifest(job())
    yield made
    made.apply(destroy=True)


def spec(site):
    return site.resources["workload"]["w"]


def with_token(site, space):
    spec(site)["token_secret"] = "t"
    site.resources["token_secret"] = {"t": {"cluster": "k", "token": "tok", "namespaces": [space]}}


def finished(cluster, space, name="train"):
    found = cluster.get("batch/v1", "Job", name, space)
    return found and (found.get("status") or {}).get("succeeded")


def test_a_job_is_made_waited_for_and_then_agreed(site, cluster, space):
    site.applied()
    assert finished(cluster, space)
    assert site.plan().pending == ()


@of_several("workload.gpus")
def test_gpus_go_before_the_command(site, cluster, space):
    with_token(site, space)
    spec(site).update(gpus=2, fraction=0.8, by="command")
    site.applied()
    (container,) = cluster.get("batch/v1", "Job", "train", space)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["bitfusion", "run", "-n", "2", "-p", "0.8", "--", "python", "model.py"]


def test_gpus_go_into_the_environment_over_what_the_manifest_says(site, cluster, space):
    manifest = job()
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "NUM_GPUS", "value": "7"},
        {"name": "USER", "value": "u"},
    ]
    site.manifest(manifest)
    with_token(site, space)
    spec(site).update(gpus=1, fraction=0.5)
    site.applied()
    (container,) = cluster.get("batch/v1", "Job", "train", space)["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [
        {"name": "USER", "value": "u"},
        {"name": "NUM_GPUS", "value": "1"},
        {"name": "PARTIAL_GPU", "value": "0.5"},
    ]


def test_a_finished_job_that_was_cleaned_up_is_not_run_twice(site, cluster, space):
    site.applied()
    cluster.delete("batch/v1", "Job", "train", space)
    until(lambda: cluster.get("batch/v1", "Job", "train", space) is None)
    assert site.plan().pending == ()
    spec(site)["run"] = "again"
    assert f"create Job/train in namespace {space}" in site.titles(ADDRESS)


def test_a_changed_manifest_runs_again_once_what_ended_is_cleared_away(site, cluster, space):
    site.applied()
    first = cluster.get("batch/v1", "Job", "train", space)["metadata"]["uid"]
    site.manifest(job(completions=2))
    item = site.item(ADDRESS)
    assert item.action is Action.UPDATE
    assert item.steps[0].title() == f"clear away Job/train in namespace {space}, which has ended"
    assert [change.field for change in item.changes] == ["Job/train.spec.completions"]
    site.applied()
    assert cluster.get("batch/v1", "Job", "train", space)["metadata"]["uid"] != first
    assert site.plan().pending == ()


def test_the_document_of_the_poc_runs_with_its_claim_and_its_token(site, cluster, space):
    pod, claim = yaml.safe_load_all(DOCUMENT.read_text())
    site.manifest(pod, claim)
    with_token(site, space)
    spec(site).update(gpus=2, fraction=0.8, wait="ready")
    titles = site.titles(ADDRESS)
    assert titles[1:3] == [
        f"create PersistentVolumeClaim/{claim['metadata']['name']} in namespace {space}",
        f"create Pod/{pod['metadata']['name']} in namespace {space}",
    ]
    site.apply(deadline=0.2)
    made = cluster.get("v1", "Pod", pod["metadata"]["name"], space)
    mounts = {mount["mountPath"] for mount in made["spec"]["containers"][0]["volumeMounts"]}
    assert {
        "/root/.bitfusion",
        "/etc/bitfusion/servers.conf",
        "/etc/bitfusion/tls/ca.crt",
        "/tmp/data/",
    } <= mounts
    assert list(site.item(ADDRESS).steps) == []


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)  # a real server's fake nodes write no logs
def test_what_bitfusion_locked_is_the_note(site, space):
    with_token(site, space)
    spec(site).update(gpus=2, fraction=0.8, by="command")
    (note,) = [ended.note for key, ended in site.applied().endings.items() if str(key) == ADDRESS]
    assert note == "locked 2 GPUs with partial memory 0.8 (172.24.210.80:56001)"


def test_the_client_finds_its_files_and_can_write_beside_its_own(site, cluster, space):
    with_token(site, space)
    spec(site).update(gpus=1, by="command", home="/home/gpu")
    body = job()
    pod = body["spec"]["template"]["spec"]
    pod["containers"][0] |= {
        "securityContext": {"runAsUser": 1000},
        "resources": {"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "opt", "mountPath": "/etc/bitfusionio"}],
    }
    pod["volumes"] = [{"name": "opt", "emptyDir": {}}]
    site.manifest(body)
    site.apply(deadline=0.2)
    pod = cluster.get("batch/v1", "Job", "train", space)["spec"]["template"]["spec"]
    (copying,), (container,) = pod["initContainers"], pod["containers"]
    assert {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")} == {
        "/home/gpu/.bitfusion",
        "/etc/bitfusionio",
    }
    assert {each["mountPath"] for each in container["volumeMounts"] if each.get("readOnly")} == {
        "/etc/bitfusion/servers.conf",
        "/etc/bitfusion/tls/ca.crt",
    }
    assert (copying["securityContext"], {"limits": copying["resources"]["limits"]}) == (
        {"runAsUser": 1000},
        {"limits": {"cpu": "2", "memory": "4Gi"}},
    )
    assert site.plan().pending == ()


def rendered(**how):
    return render(
        [job()], Spec.model_construct(gpus=None, home=None), Values("n", "s", token=FORMS["three"], **how)
    )[0]


@pytest.mark.parametrize(
    ("phase", "left"), [("running", True), ("finished", True), ("failed", False), ("stuck", False)]
)
def test_what_an_earlier_release_mounted_otherwise_is_left_where_it_goes_well(phase, left):
    now = rendered()
    mark = Mark("s", "workload/w").committed({})
    thing = Thing("batch/v1", "Job", "train", mark, now.earlier, going=False, phase=phase)
    state = State(
        mark=mark,
        cluster="k",
        namespace="n",
        home=None,
        record=Record(mark, {now.name: now.earlier}),
        objects={now.name: thing},
    )
    assert _kept(now, state) is left
    assert _kept(now, replace(state, objects={})) is True  # it ended and was cleared away
    assert now.matches(now.earlier)
    assert now.digest != now.earlier


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)  # no scheduler of the peer's is asked
def test_a_job_whose_pod_finds_no_node_says_why(site):
    container = {"name": "a", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    site.manifest(job(template={"spec": {"restartPolicy": "Never", "containers": [container]}}))
    (ended,) = [ended for key, ended in site.apply(deadline=1).endings.items() if str(key) == ADDRESS]
    assert (
        "Job/train finds no node for its pod: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        in ended.problem.why
    )


def pulls(image):
    return job(
        template={
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": image, "command": ["python", "model.py"]}],
            }
        }
    )


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)  # the peer pulls nothing
def test_an_image_that_can_not_be_pulled_is_waited_for_and_what_never_ran_is_replaced_without_an_allowance(
    site, cluster, space
):
    site.manifest(pulls("closed.test/a:1"))
    (ended,) = [ended for key, ended in site.apply(deadline=1).endings.items() if str(key) == ADDRESS]
    assert (ended.ending, ended.problem and ended.problem.why.partition(":")[0]) == (
        "still-waiting",
        "Job/train",
    )
    assert "ImagePullBackOff" in ended.problem.why
    assert "the kubelet tries again" in ended.problem.why
    site.manifest(pulls("open.test/a:1"))
    item = site.item(ADDRESS)
    assert (
        item.steps[0].title()
        == f"take back Job/train in namespace {space}, of which nothing ran yet, to make it anew"
    )
    guard.check(site.plan(), guard.Allow())
    site.applied()
    assert finished(cluster, space)


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)  # the peer pulls nothing
def test_what_runs_is_not_replaced_without_an_allowance(site):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "open.test/a:1"}]},
    }
    spec(site)["wait"] = "ready"
    site.manifest(pod)
    site.applied()
    site.manifest({**pod, "spec": {"containers": [{"name": "a", "image": "open.test/a:2"}]}})
    with pytest.raises(Unsafe, match="replace workload/w"):
        guard.check(site.plan(), guard.Allow())


@pytest.mark.parametrize(
    ("status", "began"),
    [
        ({}, False),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            False,
        ),
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, True),
        ({"phase": "Failed"}, True),
        ({"phase": "Unknown"}, True),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}, True),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}
                ],
            },
            True,
        ),
    ],
)
def test_what_any_container_of_was_started_ran(status, began):
    assert ran({"status": status}) is began


def test_a_changed_manifest_is_reported_by_its_fields_without_what_may_be_secret():
    live = job()["spec"]
    (container,) = live["template"]["spec"]["containers"]
    container |= {
        "env": [{"name": "EPOCHS", "value": "1"}, {"name": "API_TOKEN", "value": "before"}],
        "imagePullPolicy": "Always",
    }
    live["template"]["spec"]["volumes"] = [{"name": "kube-api-access-x1"}, {"name": "old"}]
    wanted = job()["spec"]
    (container,) = wanted["template"]["spec"]["containers"]
    container |= {"env": [{"name": "EPOCHS", "value": "5"}, {"name": "API_TOKEN", "value": "after"}]}
    wanted["template"]["spec"]["volumes"] = []
    where = "Job/t.spec.template.spec"
    assert differing("Job/t", {"spec": live}, {"metadata": {"name": "t"}, "spec": wanted}) == (
        Change(f"{where}.containers.a.env.EPOCHS.value", "1", "5"),
        Change(f"{where}.containers.a.env.API_TOKEN.value", "another value", "as in the manifest"),
        Change(f"{where}.volumes.old", "there", None),
    )


def test_a_claim_can_only_grow(site):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    site.manifest(claim)
    spec(site)["wait"] = "ready"
    site.applied()
    site.manifest({**claim, "spec": {**claim["spec"], "accessModes": ["ReadWriteMany"]}})
    (problem,) = site.plan().problems
    assert "can't change like this" in problem.what
    bigger = {**claim["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    site.manifest({**claim, "spec": bigger})
    assert site.item(ADDRESS).changes[0].field == "PersistentVolumeClaim/c.spec.resources.requests.storage"


def test_a_strangers_job_is_not_touched(site, cluster, space):
    theirs = job()
    theirs["metadata"]["namespace"] = space
    cluster.create(theirs)
    (problem,) = site.plan().problems
    assert "did not make it" in problem.what


def test_what_leaves_the_manifest_goes_and_what_leaves_the_file_too(site, cluster, space):
    second = job()
    second["metadata"]["name"] = "second"
    site.manifest(job(), second)
    site.applied()
    site.manifest(job())
    assert Change("Job/second", site.item(ADDRESS).changes[0].now, None) == site.item(ADDRESS).changes[0]
    site.applied()
    assert cluster.get("batch/v1", "Job", "second", space) is None or cluster.get(
        "batch/v1", "Job", "second", space
    )["metadata"].get("deletionTimestamp")
    site.resources = {}
    site.applied()
    assert cluster.get("v1", "ConfigMap", "bfinfra-workload-w", space) is None


def test_a_job_that_fails_says_why(site, cluster, space):
    site.manifest(
        job(
            activeDeadlineSeconds=1,
            template={
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "a", "image": "busybox", "command": ["sleep", "100"]}],
                    "nodeSelector": {"no": "where"},
                }
            },
        )
    )
    (ended,) = [ended for key, ended in site.apply(deadline=1.5).endings.items() if str(key) == ADDRESS]
    assert ended.ending in ("failed", "still-waiting")
    assert ended.problem is not None
    assert ended.problem.why


@pytest.mark.parametrize(
    ("change", "manifest", "says"),
    [
        ({"gpus": 1, "by": "command"}, {"command": None}, "has no command"),
        ({"gpus": 1, "by": "command"}, {"command": ["bitfusion", "run"]}, "starts bitfusion already"),
        (
            {"token_secret": "t"},
            {"volumeMounts": [{"name": "x", "mountPath": "/etc/bitfusion/tls"}]},
            "mounts something",
        ),
        (
            {"token_secret": "t"},
            {"volumeMounts": [{"name": "x", "mountPath": "/root/.bitfusion/"}]},
            "mounts something",
        ),
        ({"token_secret": "t"}, {"securityContext": {"runAsUser": 1000}}, "doesn't run as root"),
    ],
)
def test_what_can_not_be_filled_in_is_refused_at_its_field(site, space, change, manifest, says):
    site.resources["token_secret"] = {"t": {"cluster": "k", "token": "tok", "namespaces": [space]}}
    spec(site).update(change)
    body = job()
    container = body["spec"]["template"]["spec"]["containers"][0]
    body["spec"]["template"]["spec"]["containers"] = [
        {k: v for k, v in {**container, **manifest}.items() if v is not None}
    ]
    site.manifest(body)
    assert any(says in problem.what for problem in site.plan().problems)


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)
def test_while_its_manifest_is_away_a_workload_waits_and_what_was_started_is_held_against_its_record(
    site, cluster, space, tmp_path
):
    (tmp_path / "w.yaml").rename(tmp_path / "w-1.yaml")
    assert site.item(ADDRESS).held.what == f"{ADDRESS}: w.yaml is not there yet"
    assert site.item(ADDRESS).held.next.startswith("did you mean w-1.yaml? ")
    (tmp_path / "w-1.yaml").rename(tmp_path / "w.yaml")
    spec(site)["run"] = "again"
    site.applied()
    (tmp_path / "w.yaml").unlink()
    assert (site.item(ADDRESS).action, site.item(ADDRESS).held) == (Action.KEEP, None)
    cluster.delete("batch/v1", "Job", "train", space)
    until(lambda: cluster.get("batch/v1", "Job", "train", space) is None)
    gone = site.item(ADDRESS)
    assert (gone.held.what, [change.field for change in gone.changes]) == (
        f"{ADDRESS}: w.yaml is not there yet",
        ["Job/train"],
    )
    spec(site)["run"] = "once"
    assert site.item(ADDRESS).held is not None
    site.apply(destroy=True)
    assert cluster.get("v1", "ConfigMap", "bfinfra-workload-w", space) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "not YAML"),
        ("[]", "no manifest"),
        ("", "no manifest"),
        ("{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}", "made of"),
        ("{apiVersion: v1, kind: Pod, metadata: {generateName: x}}", "metadata.name"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: x}}", "no containers"),
        (
            (
                "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c "
                "[*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e]"
            ),
            "aliases",
        ),
        (
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: a}]}}\n---\n"
                "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: a}]}}"
            ),
            "twice",
        ),
    ],
)
def test_a_manifest_that_is_none_is_an_error_of_the_file(tmp_path, text, says):
    (tmp_path / "w.yaml").write_text(text)
    with pytest.raises(ValueError, match=says):
        manifests.read(tmp_path / "w.yaml")


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    job = yaml.safe_load((EXAMPLES["workload"].parent / "../manifests/hello.yaml").read_text())
    return kube_object(
        other(sandbox), "/apis/batch/v1/namespaces/default/jobs", {**job, "metadata": {"name": name}}
    )


UNMANAGED = Entry(at="hello", plant=unmanaged, inside="what a Job makes is its own")
