"""The steps of a policy and its tag."""

from __future__ import annotations

from bfinfra.backends.vcenter.policies import Policy
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Step

CHANGE = holds("policies", "StorageProfile.Update")
VIEW = holds("policies", "StorageProfile.View")
TAGGING = "InventoryService.Tagging"
NOWHERE = ", which no datastore fits"


@dataclass(frozen=True, kw_only=True)
class _Policy(Step):
    name: str
    policy: Policy
    nowhere: bool = False

    def title(self) -> str:
        """The title; says so if no datastore fits."""
        return super().title() + (NOWHERE if self.nowhere else "")


@dataclass(frozen=True, kw_only=True)
class Create(_Policy):
    """create the storage policy {name}"""

    rights = (CHANGE,)

    @property
    def exclusive(self) -> bool:
        """The call fails if the name is taken."""
        return True


@dataclass(frozen=True, kw_only=True)
class Update(_Policy):
    """change the storage policy {name}; what lies on datastores stays there"""

    rights = (CHANGE,)


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete the storage policy {name}"""

    destructive = True
    rights = (CHANGE, VIEW)
    uses = (Use.DESTROY,)
    name: str
    id: str
    kept: tuple[str, ...] = ()
    """The users of its tag, which therefore stays."""

    def title(self) -> str:
        """The title, with what stays."""
        return super().title() + (
            f"; its tag stays, as it is used by {', '.join(self.kept)}" if self.kept else ""
        )


@dataclass(frozen=True, kw_only=True)
class MakeCategory(Step):
    """make the category of tags {category}"""

    rights = (holds("tags", f"{TAGGING}.CreateCategory"),)
    category: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class MakeTag(Step):
    """make the tag {tag} in {category}"""

    rights = (holds("tags", f"{TAGGING}.CreateTag"),)
    tag: str
    category: str
    home: str
    """The category's id, "" if this apply creates it."""
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Detach(Step):
    """take the tag {tag} off datastores"""

    rights = (holds("tags", f"{TAGGING}.AttachTag"),)
    tag: str
    id: str
    datastores: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Attach(Step):
    """put the tag {tag} on datastores"""

    rights = (holds("tags", f"{TAGGING}.AttachTag", f"{TAGGING}.EditTag"),)
    tag: str
    id: str
    datastores: tuple[str, ...]
    mark: Mark
    """The mark, which names the datastores. It is written first, so that a killed run leaves no datastore
    with an unknown tag.
    """


@dataclass(frozen=True, kw_only=True)
class RemoveTag(Step):
    """remove the tag {tag} of {category}, and the category where it is ours and holds no other"""

    rights = (holds("tags", f"{TAGGING}.DeleteTag", f"{TAGGING}.DeleteCategory"),)
    uses = (Use.DESTROY,)
    tag: str
    category: str
    id: str
    home: str
    """The category's id if this site created it, else ""."""


@dataclass(frozen=True, kw_only=True)
class RemoveCategories(Step):
    """remove the empty category that was made for {name}"""

    rights = (holds("tags", f"{TAGGING}.DeleteCategory"),)
    uses = (Use.DESTROY,)
    name: str
    ids: tuple[str, ...]
