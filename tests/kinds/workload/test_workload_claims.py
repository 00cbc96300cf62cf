"""Claims of a workload against the storage of the supervisor namespace that they come from."""

from __future__ import annotations

from types import SimpleNamespace as Observation

import pytest

from bfinfra.kinds.cluster.workload.claims import problem
from bfinfra.model.context import ResolvedRef
from bfinfra.model.names import storage_class
from bfinfra.model.refs import Key

GIB = 2**30
SPACE, CLUSTER, OTHER = (
    Key("supervisor_namespace", "a"),
    Key("tanzu_cluster", "c"),
    Key("kubernetes_cluster", "k"),
)


def claim(size: str, of: str | None = "gold") -> dict:
    return {
        "kind": "PersistentVolumeClaim",
        "spec": {**({"storageClassName": of} if of else {}), "resources": {"requests": {"storage": size}}},
    }


def needs(
    *, existing: bool = False, total: int | None = None, **storage: int | None
) -> dict[Key, ResolvedRef]:
    space = Observation(storage=storage, limits=Observation(storage=total))
    return {
        SPACE: ResolvedRef(SPACE, space, None),
        CLUSTER: ResolvedRef(CLUSTER, Observation(namespace="a"), Observation() if existing else None),
        OTHER: ResolvedRef(OTHER, Observation(), Observation()),
    }


@pytest.mark.parametrize("cluster", ["a", "c"])
@pytest.mark.parametrize(
    ("sizes", "limits", "says"),
    [
        (["100Gi"], {"gold": 100 * GIB}, ""),
        (
            ["60Gi", "60Gi"],
            {"gold": 100 * GIB},
            "its claims take 120GiB of gold; the namespace a may use 100GiB",
        ),
        (
            ["1Ti"],
            {"gold": None, "total": 1023 * GIB},
            "its claims take 1TiB; the namespace a may use 1023GiB",
        ),
        (["1.5Gi"], {"gold": GIB}, "its claims take 1536MiB of gold"),
        (["2G"], {"gold": 2 * 10**9}, ""),
        (["many"], {"gold": 0}, ""),
    ],
)
def test_claims_up_to_the_namespace_s_limits(cluster, sizes, limits, says):
    found = problem([claim(size) for size in sizes], cluster, needs(**limits))
    assert (found.what if found else "").startswith(says)
    assert bool(found) == bool(says)


def test_limits_that_only_vcenter_knows_count_too():
    seen = ResolvedRef(
        SPACE, None, Observation(settings=Observation(storage={"gold": GIB}, total_storage=None))
    )
    assert problem([claim("2Gi")], "a", {SPACE: seen})


def test_a_class_that_the_namespace_lacks_is_refused_where_no_other_can_be():
    assert "storage class silver" in str(problem([claim("1Gi", "silver")], "a", needs(gold=None)))
    assert problem([claim("1Gi", "silver")], "c", needs(gold=None))
    assert problem([claim("1Gi", "silver")], "c", needs(existing=True, gold=None)) is None
    assert problem([claim("1Gi", None)], "a", needs(gold=GIB)) is None


def test_other_clusters_storage_is_their_own():
    assert problem([claim("9Ti", "nfs")], "k", needs(gold=0)) is None
    assert problem([{"kind": "Pod"}], "a", needs(gold=0)) is None


@pytest.mark.parametrize(
    ("policy", "name"),
    [("gold", "gold"), ("vSAN Default Storage Policy", "vsan-default-storage-policy"), ("(R5)", "r5")],
)
def test_a_policy_becomes_a_storage_class(policy, name):
    assert storage_class(policy) == name
