"""Storage policies: what is decided, what a namespace of the same site takes of them, and what vCenter
keeps.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look
from pydantic import ValidationError
from pyVmomi import SoapStubAdapter, pbm
from rights.given import administrator
from sandbox.asking import Rest

from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.backends.vcenter.tagging import Category, Tag
from bfinfra.kinds.vcenter.storage_policy.decide import decide
from bfinfra.kinds.vcenter.storage_policy.kind import StoragePolicy
from bfinfra.kinds.vcenter.storage_policy.spec import Spec
from bfinfra.kinds.vcenter.storage_policy.state import Own, State, StoragePolicyFacts
from bfinfra.kinds.vcenter.storage_policy.steps import (
    Attach,
    Create,
    Delete,
    Detach,
    MakeCategory,
    MakeTag,
    RemoveTag,
    Update,
)
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Forbidden, Missing, Refusal
from bfinfra.model.mark import Mark, below
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

CATEGORIES, TAGS, BEARERS = (
    "/api/cis/tagging/category",
    "/api/cis/tagging/tag",
    "/api/cis/tagging/tag-association",
)
MARK = Mark("s", "storage_policy/p")
TIER = Category(
    "c-1", "tier", tags=(Tag("t-1", "fast", bearers=frozenset({("Datastore", "ds-1")})), Tag("t-2", "slow"))
)
AROUND = PlanContext(MARK, facts=StoragePolicyFacts({"tier": TIER}))
SPEC = Spec(tags={"tier": ("fast",)})


def existing(spec: Spec = SPEC, **changes: object) -> State:
    mark = AROUND.mark.committed(spec.applied())
    return State(
        mark=mark,
        policy=Policy("p", below(spec.description, mark), **{"tags": dict(spec.tags), "id": "1", **changes}),
    )


def decided(spec: Spec | None, state: State | None, context: PlanContext = AROUND) -> list[type]:
    return [type(step) for step in decide("p", spec, state, context)]


@pytest.mark.parametrize(
    ("spec", "state", "steps"),
    [
        (SPEC, None, [Create]),
        (SPEC, existing(), []),
        (None, existing(), [Delete]),
        (None, None, []),
        (Spec(tags={"tier": ("fast", "slow")}), existing(), [Update]),
        (SPEC, existing(tags={"tier": ("slow",)}), [Update]),
        (SPEC, existing(others=True), [Update]),
    ],
)
def test_what_is_decided(spec, state, steps):
    assert decided(spec, state) == steps


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"tiers": ("fast",)}, "there is no category of tags tiers"),
        ({"tier": ("fest",)}, "there is no tag fest in tier"),
    ],
)
def test_a_tag_that_is_not_there_is_refused_before_anything_is_written(tags, why):
    with pytest.raises(Refusal, match=why):
        decided(Spec(tags=tags), None)


def test_the_plan_reports_that_no_datastore_fits():
    assert [step.title() for step in decide("p", Spec(tags={"tier": ("slow",)}), None, AROUND)] == [
        "create the storage policy p, which no datastore fits"
    ]
    assert [step.title() for step in decide("p", SPEC, None, AROUND)] == ["create the storage policy p"]


OWN = Spec(tag={"category": "bfinfra", "name": "p", "datastores": ("shared", "local")})
STORES = {"shared": "ds-1", "local": "ds-2", "third": "ds-3"}


def tagged(
    on: tuple[str, ...] = ("ds-1", "ds-2"),
    noted: tuple[str, ...] | None = ("ds-1", "ds-2"),
    mark: Mark = MARK,
) -> Category:
    """A category of ours with the policy's tag on some datastores, of which some are noted."""
    text = below("", mark if noted is None else mark.committed({"datastores": list(noted)}))
    return Category(
        "c-2",
        "bfinfra",
        below("", mark),
        tags=(Tag("t-9", "p", text, frozenset(("Datastore", each) for each in on)),),
    )


def having(*homes: Category) -> PlanContext:
    return PlanContext(MARK, facts=StoragePolicyFacts({home.name: home for home in homes}, STORES))


def with_tag(home: Category, spec: Spec | None = OWN, users: tuple[str, ...] = ()) -> State:
    mark = MARK.committed(spec.applied()) if spec else MARK
    policy = Policy("p", below("", mark), spec.wanted, id="1") if spec else None
    return State(mark=mark, policy=policy, own=tuple(Own(home, tag, users) for tag in home.tags))


@pytest.mark.parametrize(
    ("context", "state", "steps"),
    [
        (having(), None, [MakeCategory, MakeTag, Attach, Create]),
        (having(Category("c-2", "bfinfra")), None, [MakeTag, Attach, Create]),
        (having(tagged((), None)), with_tag(tagged((), None), None), [Attach, Create]),
        (having(tagged()), with_tag(tagged()), []),
        (
            having(tagged(("ds-1", "ds-2", "ds-3"))),
            with_tag(tagged(("ds-1", "ds-2", "ds-3"))),
            [],
        ),  # somebody else put it there
        (having(tagged(("ds-1",))), with_tag(tagged(("ds-1",))), [Attach]),
        (
            having(),
            State(
                mark=MARK.committed(OWN.applied()),
                policy=Policy("p", below("", MARK.committed(OWN.applied())), OWN.wanted, id="1"),
            ),
            [MakeCategory, MakeTag, Attach],
        ),
    ],
)
@of_several("storage_policy.tag.datastores")
def test_a_tag_is_made_put_on_datastores_and_mended(context, state, steps):
    found = decide("p", OWN, state, context)
    assert [type(step) for step in found] == steps
    assert all(step.changes for step in found)


def test_datastores_that_leave_the_file_lose_the_tag_and_nobody_elses_do():
    now = OWN.model_copy(update={"tag": OWN.tag.model_copy(update={"datastores": ("shared",)})})
    on = ("ds-1", "ds-2", "ds-3")
    detach, attach, update = decide("p", now, with_tag(tagged(on)), having(tagged(on)))
    assert (
        type(detach),
        detach.datastores,
        type(attach),
        attach.datastores,
        attach.mark.applied,
        type(update),
    ) == (Detach, ("ds-2",), Attach, ("ds-1",), {"datastores": ["ds-1"]}, Update)
    assert {change.field for change in detach.changes} == {"tag.datastores"}


def test_the_tag_goes_with_its_policy_unless_somebody_else_uses_it():
    delete, remove = decide("p", None, with_tag(tagged()), AROUND)
    assert (type(delete), type(remove), remove.id, remove.home) == (Delete, RemoveTag, "t-9", "c-2")
    (delete,) = decide("p", None, with_tag(tagged(), users=("the storage policy gold",)), AROUND)
    assert (
        delete.title()
        == "delete the storage policy p; its tag stays, as it is used by the storage policy gold"
    )
    assert decided(None, with_tag(tagged(), None, ("the storage policy gold",))) == []
    assert decided(SPEC, with_tag(tagged())) == [Update, RemoveTag]


@pytest.mark.parametrize(
    ("context", "why"),
    [
        (having(tagged(mark=Mark("other", "storage_policy/p"))), "did not make it for this policy"),
        (having(Category("c-2", "bfinfra", types=("VirtualMachine",))), "is not for datastores"),
        (
            having(
                Category(
                    "c-2",
                    "bfinfra",
                    single=True,
                    tags=(Tag("t-8", "x", bearers=frozenset({("Datastore", "ds-2")})),),
                )
            ),
            "has another tag",
        ),
        (PlanContext(MARK, facts=StoragePolicyFacts({}, {"shared": "ds-1"})), "there is no datastore local"),
    ],
)
def test_strangers_tags_and_categories_that_will_not_do_are_refused(context, why):
    with pytest.raises(Refusal, match=why):
        decided(OWN, None, context)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tags": {"a": ("b",)}, "tag": {"category": "a", "name": "c", "datastores": ("d",)}},
        {"tag": {"category": "a", "name": "c", "datastores": ()}},
    ],
)
def test_a_policy_asks_for_something_and_for_each_category_once(given):
    with pytest.raises(ValidationError):
        Spec(**given)


def test_a_tag_of_its_own_comes_drifts_and_goes_and_a_strangers_use_keeps_it(sandbox, tmp_path: Path):
    site = yaml.safe_load(EXAMPLES["storage_policy"].read_text())
    site["storage_policy"] = {
        name: {"tag": {"category": "bfinfra", "name": name, "datastores": stores}}
        for name, stores in {"one": ["shared"], "two": ["shared", "local"]}.items()
    }
    path, rest = tmp_path / "site.yaml", Rest(sandbox)
    path.write_text(yaml.safe_dump(site))

    def tags() -> dict[str, tuple[str, set[str]]]:
        """Name → id and datastores, of the category."""
        homes = {rest.get(f"{CATEGORIES}/{each}")["name"]: each for each in rest.get(CATEGORIES)}
        ids = (
            rest.call("POST", f"{TAGS}?action=list-tags-for-category", {"category_id": homes["bfinfra"]}).data
            if "bfinfra" in homes
            else ()
        )
        return {
            rest.get(f"{TAGS}/{each}")["name"]: (
                each,
                {on["id"] for on in rest.call("POST", f"{BEARERS}/{each}?action=list-attached-objects").data},
            )
            for each in ids
        }

    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert {name: len(on) for name, (_, on) in tags().items()} == {"one": 1, "two": 2}
    assert plan(path, sandbox).pending == ()
    two, on = tags()["two"]
    rest.call("POST", f"{BEARERS}/{two}?action=detach", {"object_id": {"id": min(on), "type": "Datastore"}})
    assert [(str(each.key), each.field) for each in drift(path, sandbox).found] == [
        ("storage_policy/two", "tag.datastores")
    ]
    assert made(apply(path, sandbox))
    assert tags()["two"][1] == on
    with policies(sandbox) as manager:
        theirs = manager.Create(asking("theirs", "bfinfra", "two"))
        gone = apply(path, sandbox, destroy=True)
        assert made(gone), endings(gone)
        assert set(tags()) == {"two"}
        manager.Delete([theirs])
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert tags() == {}
    assert "bfinfra" not in [rest.get(f"{CATEGORIES}/{each}")["name"] for each in rest.get(CATEGORIES)]


def test_a_namespace_of_the_same_site_waits_for_its_policy_and_a_policy_in_use_goes_after_it(
    sandbox, tmp_path: Path
):
    site = yaml.safe_load(EXAMPLES["storage_policy"].read_text())
    site["supervisor_namespace"] = {
        "team-a": {"cluster": "compute", "storage": {"bf-k8s": "1TiB", "gold": None}}
    }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert plan(path, sandbox).pending == ()
    with policies(sandbox) as manager:
        (mine,) = (
            each
            for each in manager.RetrieveContent(
                manager.QueryProfile(pbm.profile.ResourceType(resourceType="STORAGE"), "REQUIREMENT")
            )
            if each.name == "bf-k8s"
        )
        (outcome,) = manager.Delete([mine.profileId])
        assert "in use by namespace team-a" in outcome.fault.msg
        manager.Update(mine.profileId, pbm.profile.CapabilityBasedProfileUpdateSpec(description="somebody's"))
    assert [str(each.key) for each in drift(path, sandbox).found] == ["storage_policy/bf-k8s"]
    assert plan(path, sandbox).problems  # its mark is gone: nobody knows whose it is
    outcome = apply(path, sandbox, adopt=frozenset({Key("storage_policy", "bf-k8s")}))
    assert made(outcome), endings(outcome)
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)


@pytest.mark.parametrize("error", [Forbidden, Missing])
def test_where_policies_can_t_be_listed_there_are_none_unless_one_is_wanted_or_the_site_that_goes_names_one(
    error, monkeypatch
):
    def refused(_):
        raise error("GET /api/vcenter/storage/policies failed")

    monkeypatch.setattr(StoragePolicies, "list", refused)
    vcenter = SimpleNamespace(session=None, rest=None)
    kind = StoragePolicy(vcenter, Site("s", None, {}))
    assert kind.observe({}, {}).states == {}
    with pytest.raises(error):
        kind.observe({"p": SPEC}, {})
    with pytest.raises(error):
        StoragePolicy(vcenter, Site("s", None, {Key("storage_policy", "p"): SPEC})).observe({}, {})


def test_a_policy_that_a_namespace_still_names_does_not_go(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["storage_policy"].read_text())
    given["supervisor_namespace"] = {"team-a": {"cluster": "compute", "storage": {"bf-k8s": "1TiB"}}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    del given["storage_policy"]
    path.write_text(yaml.safe_dump(given))
    (problem,) = plan(path, sandbox).problems
    assert (
        problem.what
        == "supervisor_namespace/team-a: storage_policy/bf-k8s would be deleted, but this field names it"
    )
    assert str(problem.where).startswith(f"{path}:")


def asking(name: str, category: str, tag: str) -> Any:
    """What somebody gives to the manager to have a policy made that asks for this tag."""
    values = pbm.capability.types.DiscreteSet(values=[tag])
    rule = pbm.capability.CapabilityInstance(
        id=pbm.capability.CapabilityMetadata.UniqueId(
            namespace="http://www.vmware.com/storage/tag", id=category
        ),
        constraint=[
            pbm.capability.ConstraintInstance(
                propertyInstance=[
                    pbm.capability.PropertyInstance(
                        id=f"com.vmware.storage.tag.{category}.property", value=values
                    )
                ]
            )
        ],
    )
    sub = pbm.profile.SubProfileCapabilityConstraints
    return pbm.profile.CapabilityBasedProfileCreateSpec(
        name=name,
        description="theirs",
        category="REQUIREMENT",
        resourceType=pbm.profile.ResourceType(resourceType="STORAGE"),
        constraints=sub(subProfiles=[sub.SubProfile(name="x", capability=[rule])]),
    )


@contextmanager
def policies(sandbox: Running) -> Iterator[Any]:
    """The manager of policies, by pyVmomi as shipped."""
    with administrator(sandbox) as si:
        main = si._stub
        host, _, port = main.host.rpartition(":")
        stub = SoapStubAdapter(
            host=host,
            port=int(port),
            version="pbm.version.v8_0_3_0",
            path="/pbm/sdk",
            poolSize=0,
            sslContext=ssl.create_default_context(cafile=str(sandbox.ca_file)),
        )
        stub.requestContext = {"vcSessionCookie": main.cookie.split('"')[1]}
        yield pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent().profileManager


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    with policies(sandbox) as manager:
        made = manager.Create(asking(name, "tier", "slow"))

    def look() -> object:
        with policies(sandbox) as manager:
            (found,) = manager.RetrieveContent([made])
            return found.name, found.description, str(found.constraints)

    return look


CHANGED_FIELDS = [
    {"tags": {"tier": ["slow"]}},
    {"description": "words"},
    {"tag": {"category": "own", "name": "k8s", "datastores": ["shared"]}},
]
UNMANAGED = Entry(
    at="bf-k8s",
    plant=unmanaged,
    inside="a policy holds nothing; one that a namespace uses vCenter keeps (test_storage_policy.py)",
)
