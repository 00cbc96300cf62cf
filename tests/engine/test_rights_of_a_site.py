"""The rights of a site: what its kinds and their steps declare, once for each object and each API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import pytest
from engine.toys import BoxSpec, LidSpec, Toy, ToyState

from bfinfra.engine.rights import needed, places
from bfinfra.model import resource
from bfinfra.model.context import ResolvedRef
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import API, CLUSTERS, READ, VCENTER, Api, Entity, Place, Right, Use, holds, may
from bfinfra.model.site import Site, VCenterSettings
from bfinfra.model.step import Step

PLAN, WATCH, APPLY, DESTROY = Use
VC = VCenterSettings(datacenter="/DC")


class Build(Step):
    """build"""

    rights = (holds("room", "Box.Build"), may("create", "boxes", "here"))


class Burn(Step):
    """burn"""

    rights = (holds("room", "Box.Burn"), may("delete", "boxes", "here"))
    uses = (Use.DESTROY, Use.APPLY)


def kind(spec: type[resource.Spec] = BoxSpec, **declared: Any) -> Any:
    """A kind that declares this, and whose words mean the places in `at`."""
    at = declared.pop("at", {})
    for name in ("places", "own_rights"):
        if name in declared:
            declared[name] = staticmethod(declared[name])
    return type(
        "Box", (Toy,), {"Spec": spec, "State": ToyState, "places": staticmethod(lambda *_: at), **declared}
    )


def rights(
    *uses: Use, vcenter: VCenterSettings | None = None, resources: Iterable[str] = ("box/a",), **kinds: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """Privileges by object and verbs by API, both as text."""
    specs = {key: kinds[key.kind].Spec.model_construct(box="a") for key in map(Key.parse, resources)}
    found = needed(Site("toys", vcenter, specs), kinds, uses)
    assert (found.site, found.uses, [*found.entities]) == ("toys", uses, sorted(found.entities))
    return (
        {f"{e.type} {e.path}{'/**' * e.propagate}": " ".join(each) for e, each in found.entities.items()},
        {said(a): " ".join(f"{v.verb}:{v.resource}" for v in each) for a, each in found.apis.items()},
    )


def said(api: Api) -> str:
    return " ".join((str(api.cluster), api.namespace or "*", *api.names))


CLUSTER = Key("cluster", "c")
ROOM, HERE = Entity("/DC/vm/room", "Folder"), Api(CLUSTER, "here")
FULL = kind(
    at={"room": [ROOM], "here": [HERE], "own": [Entity("/own", "Datastore")]},
    survey_privileges=(holds(VCENTER, "Box.Look"),),
    resource_privileges=(holds("room", "Box.Read"), may("get list", "boxes", "here")),
    step_types=(Build, Burn),
    own_rights=lambda name, spec: [(use, holds("own", f"{name}{spec.size}.{use}")) for use in Use],
)


@pytest.mark.parametrize(
    ("uses", "room", "here", "own"),
    [
        ([PLAN], "Box.Read", "get:boxes list:boxes", "a1.plan"),
        ([WATCH], "Box.Read", "get:boxes list:boxes watch:boxes", "a1.plan a1.watch"),
        (
            [APPLY],
            "Box.Build Box.Burn Box.Read",
            "create:boxes delete:boxes get:boxes list:boxes",
            "a1.apply",
        ),
        ([DESTROY], "Box.Burn", "delete:boxes", "a1.destroy"),
        (
            [WATCH, DESTROY],
            "Box.Burn Box.Read",
            "delete:boxes get:boxes list:boxes watch:boxes",
            "a1.destroy a1.plan a1.watch",
        ),
    ],
)
def test_each_use_needs_what_it_reads_and_the_rights_of_its_steps(
    uses: list[Use], room: str, here: str, own: str
) -> None:
    assert rights(*uses, vcenter=VC, box=FULL) == (
        {
            "Folder //**": " ".join(sorted(("Box.Look", *READ))),
            "Folder /DC/vm/room": room,
            "Datastore /own": own,
        },
        {"cluster/c here": here},
    )


def test_a_survey_reads_every_kind_also_without_such_resources_and_without_a_vcenter_none() -> None:
    looks = " ".join(sorted(("Box.Look", *READ)))
    assert rights(PLAN, vcenter=VC, resources=(), box=FULL) == ({"Folder //**": looks}, {})
    assert rights(PLAN, resources=(), box=FULL) == ({}, {})


class PotSpec(resource.Spec):
    cluster: Annotated[str, Ref("cluster")] = "c"


def test_a_survey_of_a_cluster_needs_its_rights_in_each_that_the_kind_may_name_and_in_no_other() -> None:
    pot = kind(PotSpec, survey_privileges=(may("list", "pots", CLUSTERS),))
    cluster, other = kind(at={API: [Api(CLUSTER)], "room": [ROOM]}), kind(at={API: [Api(Key("other", "o"))]})
    given = ("cluster/c", "other/o")
    assert rights(PLAN, resources=given, pot=pot, cluster=cluster, other=other, bare=kind())[1] == {
        "cluster/c *": "list:pots"
    }


def test_a_use_that_is_asked_for_twice_is_one() -> None:
    assert needed(Site("toys", None, {}), {}, [APPLY, PLAN, APPLY]).uses == (APPLY, PLAN)


def test_a_kind_is_told_what_a_resource_names_and_its_datacenter() -> None:
    asked: list[object] = []

    def of(
        name: str, spec: LidSpec, needs: Mapping[str, ResolvedRef], datacenter: str
    ) -> dict[str, list[Place]]:
        asked.append(
            (name, spec, {at: (each.key, each.spec, each.state) for at, each in needs.items()}, datacenter)
        )
        return {"room": [ROOM]}

    box, lid, stray = BoxSpec(), LidSpec(box="a"), LidSpec(box="b")
    resources = {Key("box", "a"): box, Key("lid", "x"): lid, Key("lid", "y"): stray}
    kinds = {"box": kind(), "lid": kind(LidSpec, places=of)}
    found = places(Site("toys", VCenterSettings(datacenter="/X/"), resources), kinds)
    assert found == {
        Key("box", "a"): {},
        Key("lid", "x"): {"room": [ROOM]},
        Key("lid", "y"): {"room": [ROOM]},
    }
    assert asked == [
        ("x", lid, {"box": (Key("box", "a"), box, None)}, "X"),
        ("y", stray, {"box": (Key("box", "b"), None, None)}, "X"),
    ]


@pytest.mark.parametrize("vcenter", [None, VCenterSettings()])
def test_of_a_datacenter_that_the_site_does_not_name_any_will_do(vcenter: VCenterSettings | None) -> None:
    told = kind(
        places=lambda *asked: {"room": [Entity(asked[-1], "Datacenter")]},
        resource_privileges=(holds("room", "A"),),
    )
    assert "Datacenter *" in rights(PLAN, vcenter=vcenter, box=told)[0]


AB = holds("here", "B", "A")


def on(*places: Place, right: Right = AB) -> tuple[dict[str, str], dict[str, str]]:
    """What is needed where a kind reads these places."""
    return rights(PLAN, vcenter=VC, box=kind(at={"here": places}, resource_privileges=(right,)))


@pytest.mark.parametrize(
    ("path", "type", "set_on"),
    [
        ("/DC/vm", "Folder", "Datacenter /DC"),
        ("/DC/network", "Folder", "Datacenter /DC"),
        ("/DC/vms", "Folder", "Folder /DC/vms"),
        ("/DC/vm/vm", "Folder", "Folder /DC/vm/vm"),
        ("/DC/vm", "Network", "Network /DC/vm"),
        ("/DC/host/A/Resources", "ResourcePool", "ClusterComputeResource /DC/host/A"),
        ("/DC/host/A/Resources/Resources", "ResourcePool", "ResourcePool /DC/host/A/Resources/Resources"),
        ("/DC/host/A/Resources/a", "ResourcePool", "ResourcePool /DC/host/A/Resources/a"),
        ("/DC/vm/Resources", "Folder", "Folder /DC/vm/Resources"),
    ],
)
@pytest.mark.parametrize("below", [False, True])
def test_a_permission_is_set_where_vcenter_takes_it(path: str, type: str, set_on: str, below: bool) -> None:
    assert on(Entity(path, type, below))[0] == {
        "Folder //**": " ".join(READ),
        f"{set_on}{'/**' * below}": "A B",
    }


def test_an_object_has_one_permission_also_where_something_needs_it_below_as_well() -> None:
    assert on(ROOM, ROOM._replace(propagate=True), Entity("/b", "Folder"))[0] == {
        "Folder //**": " ".join(READ),
        "Folder /DC/vm/room/**": "A B",
        "Folder /b": "A B",
    }
    step = type("Fill", (Build,), {"rights": (holds("whole", "C"),)})
    both = kind(
        at={"room": [ROOM], "whole": [ROOM._replace(propagate=True)]},
        resource_privileges=(holds("room", "A"),),
        step_types=(step,),
    )
    assert rights(APPLY, box=both)[0] == {"Folder /DC/vm/room/**": "A C"}


READS = may("list get", "secrets pods", "here")
BOTH = "get:pods list:pods get:secrets list:secrets"


@pytest.mark.parametrize(
    ("apis", "left"),
    [
        ([Api(CLUSTER), Api(CLUSTER, "a")], ["cluster/c *"]),
        ([Api(CLUSTER, "a"), Api(CLUSTER, "b")], ["cluster/c a", "cluster/c b"]),
        ([Api(CLUSTER, "a"), Api(CLUSTER, "a", ("x",))], ["cluster/c a"]),
        ([Api(CLUSTER, "a", ("x", "y")), Api(CLUSTER, "a", ("x",))], ["cluster/c a x y"]),
        (
            [Api(CLUSTER, "a", ("x", "y")), Api(CLUSTER, "a", ("x", "z"))],
            ["cluster/c a x y", "cluster/c a x z"],
        ),
        ([Api(CLUSTER, "", ("x",)), Api(CLUSTER, "a")], ["cluster/c * x", "cluster/c a"]),
        ([Api(CLUSTER, "", ("x", "y")), Api(CLUSTER, "a", ("y", "x"))], ["cluster/c * x y"]),
        (
            [Api(CLUSTER, "a", ("x", "y")), Api(CLUSTER, "a", ("y", "x"))],
            ["cluster/c a x y", "cluster/c a y x"],
        ),
        ([Api(CLUSTER), Api(Key("cluster", "d"), "a")], ["cluster/c *", "cluster/d a"]),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_verb_is_granted_once_in_the_widest_place(apis: list[Api], left: list[str], order: int) -> None:
    assert [*on(*apis[::order], right=READS)[1].items()] == [(api, BOTH) for api in left]


def test_what_is_only_wanted_in_the_wide_place_is_needed_in_the_narrow_one_too() -> None:
    wide, narrow = Api(CLUSTER), Api(CLUSTER, "a")
    both = kind(
        at={"wide": [wide], "narrow": [narrow]},
        resource_privileges=(
            may("list", "pods", "wide", optional="the count"),
            may("get", "pods", "wide"),
            may("list get watch", "pods", "narrow"),
        ),
    )
    assert rights(PLAN, box=both)[1] == {
        "cluster/c *": "get:pods list:pods",
        "cluster/c a": "list:pods watch:pods",
    }
    found = needed(Site("toys", None, {Key("box", "a"): BoxSpec()}), {"box": both}, [PLAN])
    assert [verb.optional for verb in found.apis[wide]] == ["", "the count"]


def test_a_privilege_is_of_objects_and_a_verb_of_apis() -> None:
    assert on(ROOM, HERE) == ({"Folder //**": " ".join(READ), "Folder /DC/vm/room": "A B"}, {})
    assert on(ROOM, HERE, right=READS) == ({"Folder //**": " ".join(READ)}, {"cluster/c here": BOTH})


def test_only_what_is_listed_can_be_watched() -> None:
    assert rights(WATCH, box=kind(at={"here": [HERE]}, resource_privileges=(may("get", "pods", "here"),)))[
        1
    ] == {"cluster/c here": "get:pods"}
