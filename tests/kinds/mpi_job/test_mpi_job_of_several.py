"""A job with several workers, each with several processes and GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from kinds.of_several import of_several

from bfinfra.kinds.cluster.mpi_job.manifest import manifest, mpirun
from bfinfra.kinds.cluster.mpi_job.spec import Spec


def job(**fields: int) -> Spec:
    given: dict[str, object] = {
        "cluster": "k",
        "image": "i",
        "command": ["python", "train.py"],
        "workers": 2,
        "transport": "tcp",
    }
    return Spec.model_validate({**given, **fields})


@pytest.fixture(params=["v1alpha2", "v2beta1"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def made(version: str, **fields: int) -> dict[str, Any]:
    found: dict[str, Any] = manifest("j", job(**fields), version, "default")["spec"]
    return found


@of_several("mpi_job.workers", "mpi_job.slots")
def test_every_process_of_every_worker_is_started(version: str) -> None:
    found = made(version, workers=3, slots=4)
    assert (found["mpiReplicaSpecs"]["Worker"]["replicas"], found["slotsPerWorker"]) == (3, 4)
    words = mpirun(job(workers=3, slots=4))
    assert words[words.index("-np") + 1] == "12"


@of_several("mpi_job.gpus")
def test_each_worker_asks_for_as_many_gpus_and_the_launcher_for_none(version: str) -> None:
    found = made(version, gpus=4)["mpiReplicaSpecs"]
    (worker,) = found["Worker"]["template"]["spec"]["containers"]
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": 4}
    (launcher,) = found["Launcher"]["template"]["spec"]["containers"]
    assert "nvidia.com/gpu" not in str(launcher.get("resources"))


@of_several("mpi_job.retries")
def test_a_job_is_tried_again_as_often_as_the_site_says(version: str) -> None:
    found = made(version, retries=5)
    assert (found if version == "v1alpha2" else found["runPolicy"])["backoffLimit"] == 5
