"""What a user writes for a storage policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import storage, tag
from bfinfra.model import resource
from bfinfra.model.names import storage_class
from bfinfra.model.order import Capability, Specs
from bfinfra.model.resource import Part

Named = Annotated[str, StringConstraints(pattern=r"^[^/\n]{1,80}$")]


class OwnTag(Part):
    """A tag that is made for the policy. Nobody else's tag is taken for it, and it goes with the policy,
    unless somebody else uses it.
    """

    category: Named
    """Category; made where there is none. One that is there has to be for datastores."""
    name: Named
    """The tag."""
    datastores: Annotated[tuple[str, ...], Field(min_length=1)]
    """Datastores that get it. Others that somebody puts it on keep it."""


class Spec(resource.Spec):
    """What a user writes for one policy; its name is the policy's name in vCenter, and in lower case the
    storage class's in namespaces.
    """

    name_pattern = r"[^/\n]{1,80}"
    name_rule = "no slash, at most 80 characters"

    tags: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Category → tags: a datastore fits that has, of each category, one of these. Category and tags are there
    already.
    """
    tag: OwnTag | None = None
    """A tag that is made, and that a datastore has to have as well."""
    description: str = ""
    """Free text; bfinfra keeps its mark in the last line under it."""

    @model_validator(mode="after")
    def _asks(self) -> Spec:
        if not self.tags and self.tag is None:
            raise ValueError("give tags, or a tag that is made")
        if self.tag is not None and self.tag.category in self.tags:
            raise ValueError("tag: its category stands under tags, too; a datastore would fit without it")
        return self

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Category → tags, with the one that is made."""
        own = {self.tag.category: (self.tag.name,)} if self.tag else {}
        return {category: tuple(sorted(set(tags))) for category, tags in {**self.tags, **own}.items()}

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its storage class, and the tag that is made."""
        yield storage(storage_class(name))
        if self.tag is not None:
            yield tag(self.tag.category, self.tag.name)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """Tags that another policy makes."""
        return (tag(category, each) for category, names in self.tags.items() for each in names)
