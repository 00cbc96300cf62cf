"""Volumes and authorities of clusters on supervisors whose definition knows neither: refused before anything
is written.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bfinfra.kinds.supervisor.tanzu_cluster import decide, declared
from bfinfra.kinds.supervisor.tanzu_cluster.facts import TanzuClusterFacts
from bfinfra.kinds.supervisor.tanzu_cluster.kind import TanzuCluster
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.model.errors import Forbidden, Refusal
from bfinfra.model.refs import Key
from bfinfra.sandbox.kubernetes.tanzu_definitions import definitions

NODES = {"vm_class": "small", "storage_class": "gold"}
DISKS = {**NODES, "volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "20GiB"}}}
API = "run.tanzu.vmware.com/v1alpha1"


def spec(control_plane=NODES, workers=NODES, **more):
    return Spec.model_validate(
        {
            "namespace": "team-a",
            "version": "v1.20",
            "control_plane": {"count": 1, **control_plane},
            "workers": {"w": {"count": 1, **workers}},
            **more,
        }
    )


def supervisor(*, first):
    definition = definitions(namespaced_classes=False, first=first)[0]
    return SimpleNamespace(
        get=lambda api, kind, name: definition if name == definition["metadata"]["name"] else None
    )


def asked(wanted, *, first, api=API):
    return declared.undeclared(supervisor(first=first), api, declared.unproved(wanted, None))


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (spec(control_plane=DISKS), "control_plane.volumes"),
        (spec(workers=DISKS), "workers.w.volumes"),
        (spec(trust={"harbor": {"registry": "h"}}), "trust"),
    ],
)
def test_what_the_definition_of_2021_lacks_is_refused_at_its_field(wanted, field):
    unknown = asked(wanted, first=True)
    assert unknown == {field}
    context = SimpleNamespace(facts=TanzuClusterFacts(undeclared={"c": unknown}))
    with pytest.raises(Refusal, match="doesn't know") as refused:
        decide.create("c", wanted, context)
    assert refused.value.field == field


def test_later_definitions_know_them_in_each_version():
    wanted = spec(control_plane=DISKS, workers=DISKS, trust={"harbor": {"registry": "h"}})
    for version in ("v1alpha1", "v1alpha2", "v1alpha3"):
        assert asked(wanted, first=False, api=f"run.tanzu.vmware.com/{version}") == frozenset()


def test_a_cluster_without_them_and_one_that_shows_them_ask_nothing():
    assert declared.unproved(spec(), None) == ()
    shown = SimpleNamespace(view=lambda _: {"workers": {"w": {"volumes": {"containerd": {}}}}})
    assert declared.unproved(spec(workers=DISKS), shown) == ()


def test_an_account_that_may_not_read_the_definition_is_warned():
    def get(*_):
        raise Forbidden("no")

    wanted = spec(workers=DISKS)
    unknown = declared.undeclared(SimpleNamespace(get=get), API, declared.unproved(wanted, None))
    assert unknown is None
    key = Key("tanzu_cluster", "c")
    (conflict,) = TanzuCluster.conflicts({key: wanted}, {}, TanzuClusterFacts(undeclared={"c": None}))
    assert (conflict.at.field, conflict.stops) == ("workers.w.volumes", False)
