"""Storage policies that ask for tags: made, read back, changed, deleted."""

from __future__ import annotations

from dataclasses import replace

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.backends.vcenter.tagging import Category, Tag, Tagging
from bfinfra.model.errors import Exists, Rejected

MINE = Policy(
    "bf-k8s", "for claims\nbfinfra:1 site=s address=storage_policy/bf-k8s", {"tier": ("fast", "slow")}
)
TAGS = "vcsim: /api/cis/tagging is not there"
OLD = "/rest/com/vmware/cis/tagging"  # the only one that vcsim has


def tagged(vcenter: VCenterSide) -> VCenter:
    """A category with two tags, which go with the test."""
    client = vcenter.open()
    category = client.rest.post(
        f"{OLD}/category",
        {
            "create_spec": {
                "name": "tier",
                "description": "",
                "cardinality": "MULTIPLE",
                "associable_types": [],
            }
        },
    )["value"]
    vcenter.closing.append(lambda: client.rest.delete(f"{OLD}/category/id:{category}"))
    for name in ("fast", "slow"):
        client.rest.post(
            f"{OLD}/tag", {"create_spec": {"name": name, "description": "", "category_id": category}}
        )
    return client


def made(vcenter: VCenterSide) -> tuple[StoragePolicies, Policy]:
    """A policy that goes with the test."""
    client = tagged(vcenter)
    policies = StoragePolicies(client.session, client.rest)
    identity = policies.create(MINE)
    vcenter.closing.append(lambda: policies.delete(identity))
    return policies, replace(MINE, id=identity)


@call("policies.create", "policies.read", "policies.delete", case="read back as it was made; deleted twice")
def test_a_policy_is_read_back_as_it_was_made(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    assert list(policies.read([mine.id])) == [mine]
    policies.delete(mine.id)
    policies.delete(mine.id)


@call("policies.read", case="a policy that is gone")
def test_a_policy_that_is_gone_is_refused(vcenter: VCenterSide, account: Account) -> None:
    policies, mine = made(vcenter)
    policies.delete(mine.id)
    with account.refused(Rejected):
        policies.read([mine.id])


@call("policies.read_existing", case="one of them is gone")
def test_of_several_policies_the_existing_ones_are_read(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    assert list(policies.read_existing([mine, replace(mine, id="6e2f0b9c-8f7d-4c39-9d6a-1f0e2d3c4b5a")])) == [
        mine
    ]


@call("policies.create", case="the name is taken")
@lacks("vcsim: two storage policies can have one name")
def test_a_name_of_a_policy_is_taken_once(vcenter: VCenterSide, account: Account) -> None:
    policies, _ = made(vcenter)
    with account.refused(Exists):
        policies.create(MINE)


@call("policies.update", case="other tags, another description")
@lacks("vcsim: a storage policy can't be changed")
def test_a_policy_changes(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    other = replace(mine, description="other", tags={"tier": ("slow",)})
    policies.update(other, tags=True)
    assert list(policies.read([mine.id])) == [other]


@call("policies.list", case="all policies in one read")
@lacks("vcsim: /api/vcenter/storage/policies and /api/content/library are not there")
def test_policies_are_listed(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    assert replace(mine, tags={}) in policies.list()


def own(vcenter: VCenterSide) -> tuple[Tagging, str, str]:
    """A category and a tag that go with the test, and their ids."""
    tagging = Tagging(vcenter.open().rest)
    category = tagging.make_category("bfinfra", "ours")
    vcenter.closing.append(lambda: tagging.remove_empty(category))
    tag = tagging.make_tag(category, "bf-k8s", "mine")
    vcenter.closing.append(lambda: tagging.remove(tag))
    return tagging, category, tag


def ours(name: str, description: str) -> bool:
    return (name, description) == ("bfinfra", "ours")


@call(
    "tagging.make_category",
    "tagging.make_tag",
    "tagging.read",
    "tagging.describe",
    "tagging.attach",
    "tagging.detach",
    "tagging.remove",
    "tagging.remove_empty",
    case="made, read with what bears it, described, put on datastores, taken off, removed twice",
)
@lacks(TAGS)
def test_a_tag_is_made_put_on_datastores_and_removed(vcenter: VCenterSide) -> None:
    tagging, category, tag = own(vcenter)
    store = only(vcenter.open().inventory.read().datastore(vcenter.datastore))
    assert store
    tagging.describe(tag, "other")
    for _ in range(2):
        tagging.attach(tag, [store.moid])
    assert tagging.read(ours) == (
        Category(
            category,
            "bfinfra",
            "ours",
            types=("Datastore",),
            tags=(Tag(tag, "bf-k8s", "other", frozenset({("Datastore", store.moid)})),),
        ),
    )
    tagging.remove_empty(category)
    for _ in range(2):
        tagging.detach(tag, [store.moid])
    (found,) = tagging.read(ours)
    assert found.tags == (Tag(tag, "bf-k8s", "other"),)
    for _ in range(2):
        tagging.remove(tag)
    for _ in range(2):
        tagging.remove_empty(category)
    assert tagging.read(ours) == ()


@call(
    "tagging.make_category",
    "tagging.make_tag",
    "tagging.attach",
    case="names that are taken; a datastore that isn't there",
)
@lacks(TAGS)
def test_what_can_not_be_done_with_tags_is_refused(vcenter: VCenterSide, account: Account) -> None:
    tagging, category, tag = own(vcenter)
    with account.refused(Exists):
        tagging.make_category("bfinfra", "")
    with account.refused(Exists):
        tagging.make_tag(category, "bf-k8s", "")
    with account.refused(Rejected):
        tagging.attach(tag, ["datastore-99999"])
