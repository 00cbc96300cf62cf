from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, EXAMPLES, QUICK, apply, endings, made, plan
from kinds.unmanaged import Entry, Look, mpi
from rights.given import other

import bfinfra
from bfinfra.engine import guard
from bfinfra.engine.apply import Options
from bfinfra.kinds.cluster.mpi_job.decide import Clear, Create, Replace, State, Withdraw, WriteRecord, decide
from bfinfra.kinds.cluster.mpi_job.kind import TOTAL, _phase
from bfinfra.kinds.cluster.mpi_job.manifest import digest, manifest, mpirun
from bfinfra.kinds.cluster.mpi_job.spec import Spec
from bfinfra.kinds.cluster.mpi_operator.spec import Spec as Operator
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

COMMAND = (
    "python",
    "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py",
    "--model=resnet50",
    "--batch_size=32",
    "--variable_update=horovod",
    "--use_fp16",
    "--xla=True",
    "--num_batches=10000",
)
DOCUMENT = [
    "mpirun",
    "--allow-run-as-root",
    "-np",
    "4",
    "-bind-to",
    "none",
    "-map-by",
    "slot",
    "-x",
    "NCCL_DEBUG=INFO",
    "-x",
    "NCCL_IB_DISABLE=0",
    "-x",
    "NCCL_IB_GDR_LEVEL=0",
    "-x",
    "HOROVOD_MPI_THREADS_DISABLE=1",
    "-x",
    "LD_LIBRARY_PATH",
    "-x",
    "PATH",
    "-mca",
    "pml",
    "ob1",
    "-mca",
    "btl",
    "^openib",
]
MARK = Mark("s", "mpi_job/tensorflow-benchmarks")


def job(**changes):
    given = {
        "cluster": "k",
        "image": "mpioperator/tensorflow-benchmarks:latest",
        "command": COMMAND,
        "workers": 4,
        "transport": "roce",
    }
    return Spec(**{**given, **changes})


def context(spec, **operator):
    needs = {"cluster": ResolvedRef(Key("kubernetes_cluster", "k"), None, None)}
    if operator:
        needs["operator"] = ResolvedRef(
            Key("mpi_operator", "mpi"), Operator(**{"cluster": "k", **operator}), None
        )
    return PlanContext(MARK, needs)


def existing(spec, phase="Running", **changes):
    body = manifest("tensorflow-benchmarks", spec, "v2beta1", "default")
    state = State(
        mark=MARK.committed(spec.applied()),
        name="tensorflow-benchmarks",
        cluster="k",
        namespace="default",
        home=Endpoint(),
        version="v2beta1",
        digest=digest(body),
        spec=body["spec"],
        phase=phase,
    )
    return replace(state, **changes)


def steps(spec, state, **operator):
    return decide("tensorflow-benchmarks", spec, state, context(spec, **operator))


def test_the_documents_job_is_what_its_fields_make():
    command = mpirun(job())
    pairs = lambda words: {tuple(words[at : at + 2]) for at, word in enumerate(words) if word.startswith("-")}  # noqa: E731 - the order of options says nothing
    assert pairs(command[: -len(COMMAND)]) == pairs(DOCUMENT)
    assert tuple(command[-len(COMMAND) :]) == COMMAND
    made = manifest("tensorflow-benchmarks", job(), "v1alpha2", "default")
    assert (made["apiVersion"], made["spec"]["slotsPerWorker"], made["spec"]["cleanPodPolicy"]) == (
        "kubeflow.org/v1alpha2",
        1,
        "Running",
    )
    worker = made["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker == {
        "replicas": 4,
        "template": {
            "spec": {
                "containers": [
                    {
                        "image": "mpioperator/tensorflow-benchmarks:latest",
                        "name": "tensorflow-benchmarks",
                        "securityContext": {"privileged": True},
                        "volumeMounts": [{"mountPath": "/dev/infiniband", "name": "infiniband"}],
                        "resources": {"limits": {"nvidia.com/gpu": 1}},
                    }
                ],
                "volumes": [{"name": "infiniband", "hostPath": {"path": "/dev/infiniband"}}],
            }
        },
    }


def test_over_tcp_two_variables_change_and_no_worker_is_privileged():
    roce, tcp = set(mpirun(job())), set(mpirun(job(transport="tcp")))
    assert roce - tcp == {"NCCL_IB_DISABLE=0", "HOROVOD_MPI_THREADS_DISABLE=1"}
    assert tcp - roce == {"NCCL_IB_DISABLE=1", "HOROVOD_MPI_THREADS_DISABLE=0"}
    assert "privileged" not in str(manifest("j", job(transport="tcp"), "v2beta1", "default"))


def test_both_versions_come_from_the_same_fields():
    old, new = (
        manifest("j", job(retries=2, deadline=600), version, "default")["spec"]
        for version in ("v1alpha2", "v2beta1")
    )
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 2, "activeDeadlineSeconds": 600}
    assert new["runPolicy"] == policy
    assert {name: old[name] for name in policy} == policy
    assert old["mpiReplicaSpecs"] == new["mpiReplicaSpecs"]


def test_its_environment_goes_over_what_transport_sets():
    command = mpirun(job(environment={"NCCL_IB_DISABLE": "1", "PATH": "/opt/bin"}))
    assert "NCCL_IB_DISABLE=1" in command
    assert "NCCL_IB_DISABLE=0" not in command
    assert "PATH" not in command


def test_the_operators_version_is_the_jobs():
    (create,) = steps(job(operator="mpi"), None, api="v1alpha2")
    assert create.manifest["apiVersion"] == "kubeflow.org/v1alpha2"
    with pytest.raises(Refusal, match="serves"):
        steps(job(operator="mpi", api="v2beta1"), None, api="v1alpha2")
    with pytest.raises(Refusal, match="runs in the cluster other"):
        steps(job(operator="mpi"), None, cluster="other")


@pytest.mark.parametrize(
    ("phase", "step"), [("Running", Replace), ("Created", Replace), ("Succeeded", Clear), ("Failed", Clear)]
)
def test_another_number_of_workers_is_another_job(phase, step):
    found = steps(job(workers=2), existing(job(), phase))
    assert [type(each) for each in found] == [step, Create]
    assert [each.field for each in found[0].changes] == ["workers"]


def test_a_job_of_which_nothing_ran_is_replaced_without_an_allowance():
    withdraw, create = steps(job(workers=2), existing(job(), "Created", ran=False))
    assert (type(withdraw), type(create), withdraw.destructive) == (Withdraw, Create, False)


def test_what_changes_nothing_in_the_job_is_only_noted():
    (note,) = steps(job(wait="running"), existing(job()))
    assert isinstance(note, WriteRecord)


def test_a_job_that_somebody_changed_is_made_anew_and_the_field_is_named():
    state = existing(job())
    theirs = {
        **state.spec,
        "mpiReplicaSpecs": {
            **state.spec["mpiReplicaSpecs"],
            "Worker": {**state.spec["mpiReplicaSpecs"]["Worker"], "replicas": 1},
        },
    }
    stop, _ = steps(job(), replace(state, spec=theirs))
    assert [(c.field, c.now, c.wanted) for c in stop.changes] == [("workers", 1, 4)]


def test_defaults_of_the_server_are_no_drift():
    state = existing(job())
    assert (
        steps(
            job(),
            replace(
                state, spec={**state.spec, "sshAuthMountPath": "/root/.ssh", "mpiImplementation": "OpenMPI"}
            ),
        )
        == ()
    )


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        ("total images/sec: 1205.60", "1205.60"),
        ("job-worker-0: total images/sec:  98.1", "98.1"),
        ("Total img/sec on 4 GPU(s): 912.3 +-2.1", "912.3"),
        ("100\timages/sec: 301.4 +/- 0.0", None),
    ],
)
def test_the_result_is_read_from_the_log(line, rate):
    found = TOTAL.search(line)
    assert (found and found[1]) == rate


def test_a_finished_job_that_still_says_running_is_finished():
    true = [
        {"type": each, "status": "True", "message": each.lower()}
        for each in ("Created", "Running", "Succeeded")
    ]
    assert _phase(true) == ("Succeeded", "succeeded")


def test_its_images_a_second_are_its_note(sandbox):
    outcome = apply(EXAMPLES["mpi_job"], sandbox)
    assert {str(key): ended.note for key, ended in outcome.endings.items()}[
        "mpi_job/tensorflow-benchmarks"
    ] == "602.80 images/sec on 2 processes over roce"


def test_workers_that_find_no_node_are_reported_in_the_schedulers_words_and_replaced_without_an_allowance(
    sandbox, tmp_path
):
    site = yaml.safe_load(EXAMPLES["mpi_job"].read_text())
    del site["nvidia_device_plugin"]
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    options = Options(retry=QUICK, deadline=2)
    outcome = bfinfra.apply(
        bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=options,
        context=bfinfra.RunContext(sandbox=sandbox),
    )
    ending = endings(outcome)["mpi_job/tensorflow-benchmarks"]
    assert ending.startswith("still-waiting")
    assert (
        "tensorflow-benchmarks-worker-0 finds no node: 0/2 nodes are available: 2 Insufficient "
        "nvidia.com/gpu."
    ) in ending
    site["mpi_job"]["tensorflow-benchmarks"]["gpus"] = 0
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    changed = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox)
    guard.check(bfinfra.plan(changed, context=bfinfra.RunContext(sandbox=sandbox)), guard.Allow())
    again = bfinfra.apply(
        changed,
        approve=lambda _: guard.Allow(),
        options=Options(retry=QUICK, deadline=60),
        context=bfinfra.RunContext(sandbox=sandbox),
    )
    assert made(again), endings(again)


@pytest.fixture
def edited(tmp_path):
    def edit(kind, **changes):
        site = yaml.safe_load(EXAMPLES["mpi_job"].read_text())
        site[kind][next(iter(site[kind]))] |= changes
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
        return tmp_path / "site.yaml"

    return edit


def test_the_documents_version_runs_too(sandbox, edited):
    outcome = apply(edited("mpi_operator", api="v1alpha2"), sandbox)
    assert made(outcome), endings(outcome)
    assert plan(edited("mpi_operator", api="v1alpha2"), sandbox).pending == ()
    (problem,) = {str(p.what) for p in plan(EXAMPLES["mpi_job"], sandbox).problems}
    assert "can't change from v1alpha2 to v2beta1" in problem


def test_an_image_that_changes_is_a_changed_deployment(sandbox, edited):
    apply(EXAMPLES["mpi_job"], sandbox)
    path = edited("mpi_operator", image="172.16.7.9/mpi-operator:0.8.0")
    (item,) = plan(path, sandbox).pending
    assert "image" in {change.field for change in item.changes}
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert plan(path, sandbox).pending == ()


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return mpi(other(sandbox), name)


UNMANAGED = Entry(at="tensorflow-benchmarks", plant=unmanaged, inside="what a job makes is its own")
