"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.given import other
from rights.life import Life
from rights.others import take_labels_off

from bfinfra.sandbox import Running

JOB = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/tensorflow-benchmarks"


def resize(sandbox: Running) -> None:
    """Somebody gives each worker more slots."""
    other(sandbox).call("PATCH", JOB, {"spec": {"slotsPerWorker": 2}})


def unlabel(sandbox: Running) -> None:
    """Somebody takes the site's label off the device plug-in."""
    take_labels_off(sandbox, "/apis/apps/v1/daemonsets")


def delete(sandbox: Running) -> None:
    """Somebody deletes the job: no list has it, so a plan asks for it by its name."""
    other(sandbox).call("DELETE", JOB)


LIFE = Life(
    changes=(
        ("workers: 2", "workers: 2\n    wait: running"),
        ("namespace: default", "namespace: default, image: registry.small.test/mpi-operator:0.8.0"),
    ),
    drifts=(resize, unlabel),
    reads_inside=True,
    before_plan=delete,
)
