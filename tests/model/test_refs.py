import dataclasses
from typing import Annotated, NamedTuple

import pytest
from pydantic import Field, TypeAdapter

from bfinfra.model.refs import Edge, Key, Ref, edges, kinds_named
from bfinfra.model.resource import Part, Spec


class Classes(NamedTuple):
    """A Spec and a State with references of all sorts."""

    spec: type[Spec]
    part: type[Part]
    state: type
    inner: type


@pytest.fixture
def classes() -> Classes:
    cluster_name = Annotated[str, Ref("tanzu_cluster", "kubernetes_cluster")]

    class Inner(Part):
        token: Annotated[str, Ref("bitfusion_token")] | None = None

    class Everything(Spec):
        cluster: cluster_name
        maybe: cluster_name | None = None
        short: Annotated[cluster_name | None, Field(max_length=9)] = None
        many: Annotated[tuple[cluster_name, ...], Field(max_length=9)] = ()
        few: tuple[cluster_name, ...] | None = None
        named: Annotated[dict[str, Inner], Field(max_length=9)] = {}  # noqa: RUF012 - pydantic copies it
        inner: Inner | None = None
        limits: dict[Annotated[str, Ref("storage_policy")], int] = {}  # noqa: RUF012 - the same
        namespace: Annotated[str, Ref("supervisor_namespace", optional=True)] = "none"
        plain: str = "x"

    @dataclasses.dataclass(frozen=True, slots=True)
    class Disk:
        image: Annotated[str, Ref("host_image")]

    @dataclasses.dataclass(frozen=True)
    class Standing:
        cluster: cluster_name | None = None
        disks: tuple[Disk, ...] = ()
        plain: str = "x"

    return Classes(Everything, Inner, Standing, Disk)


def test_an_annotated_name_is_an_edge_wherever_it_is_nested(classes: Classes) -> None:
    token = classes.part(token="t")
    spec = classes.spec(
        cluster="a", short="s", many=("b",), few=("c",), named={"one": token}, inner=token, limits={"gold": 1}
    )
    assert edges(spec) == (
        Edge("cluster", (Key("tanzu_cluster", "a"), Key("kubernetes_cluster", "a"))),
        Edge("short", (Key("tanzu_cluster", "s"), Key("kubernetes_cluster", "s"))),
        Edge("many.0", (Key("tanzu_cluster", "b"), Key("kubernetes_cluster", "b"))),
        Edge("few.0", (Key("tanzu_cluster", "c"), Key("kubernetes_cluster", "c"))),
        Edge("named.one.token", (Key("bitfusion_token", "t"),)),
        Edge("inner.token", (Key("bitfusion_token", "t"),)),
        Edge("limits.gold", (Key("storage_policy", "gold"),)),
        Edge("namespace", (Key("supervisor_namespace", "none"),), optional=True),
    )
    assert edges(spec) is edges(spec), "it never changes, and every stage asks"


def test_states_have_edges_too(classes: Classes) -> None:
    disk = classes.inner(image="esxi")
    assert [(e.field, e.name) for e in edges(classes.state(cluster="a", disks=(disk,)))] == [
        ("cluster", "a"),
        ("disks.0.image", "esxi"),
    ]
    assert [e.kinds for e in edges(disk)] == [("host_image",)]
    assert edges(classes.state()) == edges(None) == ()


def test_a_class_names_all_kinds_it_may_refer_to(classes: Classes) -> None:
    clusters = {"tanzu_cluster", "kubernetes_cluster"}
    assert kinds_named(classes.spec) == {
        *clusters,
        "bitfusion_token",
        "storage_policy",
        "supervisor_namespace",
    }
    assert kinds_named(classes.state) == {*clusters, "host_image"}


def test_the_schema_says_of_what_kinds_a_text_is_a_name() -> None:
    assert TypeAdapter(Annotated[str, Ref("pole", "tree")]).json_schema() == {
        "type": "string",
        "x-names": ["pole", "tree"],
    }


def test_addresses() -> None:
    assert Key.parse("tanzu_cluster/cluster-01") == Key("tanzu_cluster", "cluster-01")
    assert Key.parse("storage_policy/gold/fast") == Key("storage_policy", "gold/fast")
    for wrong in ("cluster-01", "/x", "x/"):
        with pytest.raises(ValueError, match="kind/name"):
            Key.parse(wrong)
