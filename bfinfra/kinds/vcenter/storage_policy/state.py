"""The live state of a policy and of the tag that was created for it, and the facts that decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.vcenter.policies import Policy
from bfinfra.backends.vcenter.tagging import Category, Tag
from bfinfra.model import resource
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

NAME = "storage_policy"


@dataclass(frozen=True)
class Own:
    """A tag that was created for the policy; `users`: who else uses it, in words."""

    category: Category
    tag: Tag
    users: tuple[str, ...] = ()

    @property
    def datastores(self) -> frozenset[str]:
        """Ids of the datastores that it was created for; empty while it is unfinished."""
        mark = Mark.decode(self.tag.description)
        return frozenset(map(str, ((mark.applied if mark else None) or {}).get("datastores") or ()))


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """`policy`: None if only its tag or category is left. `empty`: ids of categories that were created for it
    and hold no tag.
    """

    policy: Policy | None = None
    own: tuple[Own, ...] = ()
    empty: tuple[str, ...] = ()
    fits: bool = True
    """Whether a datastore has its tags, as far as that was read."""


@dataclass(frozen=True)
class StoragePolicyFacts:
    """The categories that the site names, with their tags; datastore ids by what the site calls them, if a
    tag is to be put on some.
    """

    categories: Mapping[str, Category] = field(default_factory=dict)
    datastores: Mapping[str, str] = field(default_factory=dict)


def fitting(
    tags: Mapping[str, tuple[str, ...]],
    categories: Mapping[str, Category],
    also: Mapping[str, frozenset[str]],
) -> frozenset[str]:
    """Ids of the datastores that have one of the tags of each category. `also`: category → datastores that
    will get the tag that is created.
    """
    found = [
        also.get(category, frozenset()).union(
            *(
                tag.datastores
                for each in (categories.get(category),)
                if each
                for tag in each.tags
                if tag.name in names
            )
        )
        for category, names in tags.items()
    ]
    return frozenset.intersection(*found) if found else frozenset()
