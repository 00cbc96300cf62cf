"""The desired state of a storage policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from bfinfra.kinds.capabilities import storage, tag
from bfinfra.model import resource
from bfinfra.model.errors import FieldError
from bfinfra.model.names import TITLE, TITLE_RULE, storage_class
from bfinfra.model.order import Capability, Specs
from bfinfra.model.resource import Part

Named = Annotated[str, StringConstraints(pattern=r"^[^/\n]{1,80}$")]


class OwnTag(Part):
    """A tag that is created for the policy. It must not exist yet. It is deleted with the policy, unless
    something else uses it.
    """

    category: Named
    """Category; created if it doesn't exist. An existing one must allow datastores."""
    name: Named
    """The tag."""
    datastores: Annotated[tuple[str, ...], Field(min_length=1)]
    """Datastores that get it, by name or path. bfinfra leaves it on others that somebody puts it on."""


class Spec(resource.Spec):
    """The desired state of one policy. Its name is the policy's name in vCenter; in lower case it is the
    storage class's name in namespaces.
    """

    name_pattern = TITLE
    name_rule = TITLE_RULE

    tags: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Category → tags, which exist already. A datastore fits that has one of the tags of each category."""
    tag: OwnTag | None = None
    """A tag to create, which a datastore must have as well."""
    description: str = ""
    """Free text. bfinfra writes its mark in a last line below it."""

    @model_validator(mode="after")
    def _asks(self) -> Spec:
        if not self.tags and self.tag is None:
            raise ValueError("give tags, or tag")
        if self.tag is not None and self.tag.category in self.tags:
            raise FieldError(
                "tags has this category, too: a datastore would fit without the tag", "tag.category"
            )
        return self

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Category → tags, with the tag that is created."""
        own = {self.tag.category: (self.tag.name,)} if self.tag else {}
        return {category: tuple(sorted(set(tags))) for category, tags in {**self.tags, **own}.items()}

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its storage class, and the tag that is created."""
        yield storage(storage_class(name))
        if self.tag is not None:
            yield tag(self.tag.category, self.tag.name)

    def requires(self, name: str, site: Specs) -> Iterator[Capability]:
        """The tags that another policy of the site creates."""
        return (tag(category, each) for category, names in self.tags.items() for each in names)
