"""The output of a TensorFlow benchmark's launcher."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of

SCRIPT = "tf_cnn_benchmarks.py"
STEP = 10
EACH = {"0": 301.4, "1": 247.9}  # images/sec of a process, by NCCL_IB_DISABLE


ROLES = ("mpi_role_type", "training.kubeflow.org/job-role")
JOBS = ("mpi_job_name", "training.kubeflow.org/job-name")
"""Labels of an operator's pods, by its version."""


def workers_of(pod: Object, pods: Sequence[Object]) -> list[Object]:
    """The workers of a launcher's job among the pods of its namespace; none where it is no launcher."""
    labels = pod["metadata"].get("labels") or {}
    role, job = next(
        ((role, job) for role, job in zip(ROLES, JOBS, strict=True) if labels.get(role) == "launcher"),
        ("", ""),
    )
    return [
        each
        for each in pods
        if role
        and dig(each, "metadata", "labels", role) == "worker"
        and dig(each, "metadata", "labels", job) == labels.get(job)
    ]


def unlicensed(worker: Object) -> list[str]:
    """Return the output of a launcher whose worker has a vGPU without a license: CUDA does not start on it,
    and mpirun ends the others.
    """
    return [
        (
            f"[1,0]<stderr>:{name_of(worker)}: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed "
            "call to cuInit: CUDA_ERROR_DEVICE_NOT_LICENSED: device doesn't have valid Grid license"
        ),
        "-" * 74,
        "Primary job  terminated normally, but 1 process returned",
        "a non-zero exit code. Per user-direction, the job has been aborted.",
        "-" * 74,
        f"mpirun noticed that process rank 0 on node {name_of(worker)} exited with a non-zero status",
    ]


def benchmark(container: Object) -> list[str]:
    """The lines; none where the container starts no such benchmark by mpirun."""
    words = [str(each) for each in container.get("command") or []]
    if not words or words[0] != "mpirun" or not any(each.endswith(SCRIPT) for each in words):
        return []
    count = int(next((words[at + 1] for at, each in enumerate(words[:-1]) if each == "-np"), "1"))
    options = dict(re.findall(r"--(\w+)=(\S+)", " ".join(words)))
    slow = next((each.partition("=")[2] for each in words if each.startswith("NCCL_IB_DISABLE=")), "1")
    rate = EACH.get(slow, EACH["1"])
    via = "IB" if slow == "0" else "Socket"
    return [
        "TensorFlow:  1.14",
        f"Model:       {options.get('model', 'trivial')}",
        f"Batch size:  {int(options.get('batch_size', '64')) * count} global",
        f"NCCL INFO NET/{via} : Using [0]",
        "Running warm up",
        "Done warm up",
        "Step\tImg/sec\ttotal_loss",
        *(f"{step}\timages/sec: {rate:.1f} +/- 0.0 (jitter = 0.0)\t8.1" for step in range(STEP, 101, STEP)),
        "-" * 64,
        f"total images/sec: {rate * count:.2f}",
        "-" * 64,
    ]
