"""The definition of MPI jobs, deleted and made anew at once, as others may do: a cluster names it before it
serves it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds.at_cluster import Site
from kinds.unmanaged import Entry, Look, kube_object, mpi
from rights.given import other
from waiting import until

from bfinfra.engine.retry import RetryPolicy
from bfinfra.kinds.cluster.mpi_operator.definition import GROUP, KIND, definition
from bfinfra.sandbox import Running


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)
def test_jobs_of_a_definition_that_is_not_served_yet_are_asked_for_again(api, cluster, clock, tmp_path):
    site = Site(tmp_path, api, "poc")
    job = {"cluster": "k", "api": "v2beta1", "image": "x:1", "command": ["x"], "workers": 2}
    site.resources = {"mpi_job": {"job": {**job, "transport": "tcp"}}}
    clock.held = True
    cluster.create(definition("v2beta1"))
    until(lambda: cluster.versions(GROUP) == ("v2beta1",))

    waits = []

    def served(seconds):
        waits.append(seconds)
        clock.let_go()
        until(lambda: cluster.serves(f"{GROUP}/v2beta1", KIND))

    found = site.plan(retry=RetryPolicy(sleep=served))
    assert not found.problems
    assert [str(item.key) for item in found.pending] == ["mpi_job/job"]
    assert len(waits) == 1


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return kube_object(other(sandbox), "/api/v1/namespaces/default/serviceaccounts", body)


UNMANAGED = Entry(
    at="mpi-operator",
    plant=unmanaged,
    inside=(lambda sandbox: mpi(other(sandbox), "theirs"), "MPIJob default/theirs"),
)
