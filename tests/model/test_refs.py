from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from bfinfra.model.refs import Edge, Key, Ref, edges, kinds_named
from bfinfra.model.resource import Part, Spec

Cluster = Annotated[str, Ref("tanzu_cluster", "kubernetes_cluster")]


class Inner(Part):
    token: Annotated[str, Ref("bitfusion_token")] | None = None


class Everything(Spec):
    cluster: Cluster
    maybe: Cluster | None = None
    many: tuple[Cluster, ...] = ()
    named: dict[str, Inner] = {}  # noqa: RUF012 - pydantic copies it


@dataclass(frozen=True)
class Standing:
    cluster: Cluster | None = None
    plain: str = "x"


def test_an_annotated_name_is_an_edge_wherever_it_is_nested():
    found = edges(Everything(cluster="a", many=("b",), named={"one": Inner(token="t")}))
    assert found == (
        Edge("cluster", (Key("tanzu_cluster", "a"), Key("kubernetes_cluster", "a"))),
        Edge("many.0", (Key("tanzu_cluster", "b"), Key("kubernetes_cluster", "b"))),
        Edge("named.one.token", (Key("bitfusion_token", "t"),)),
    )


def test_states_have_edges_too():
    assert [e.name for e in edges(Standing(cluster="a"))] == ["a"]
    assert edges(Standing()) == edges(None) == ()


def test_a_class_names_all_kinds_it_may_refer_to():
    assert kinds_named(Everything) == {"tanzu_cluster", "kubernetes_cluster", "bitfusion_token"}


def test_addresses():
    assert Key.parse("tanzu_cluster/cluster-01") == Key("tanzu_cluster", "cluster-01")
    for wrong in ("cluster-01", "/x", "x/"):
        with pytest.raises(ValueError, match="kind/name"):
            Key.parse(wrong)
