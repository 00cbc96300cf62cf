"""The side effects on a policy and its tag."""

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
        """Says so where no datastore fits."""
        return super().title() + (NOWHERE if self.nowhere else "")


@dataclass(frozen=True, kw_only=True)
class Create(_Policy):
    """create the storage policy {name}"""

    rights = (CHANGE,)

    @property
    def exclusive(self) -> bool:
        """Its name is taken once."""
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
    """Who uses its tag, which stays therefore."""

    def title(self) -> str:
        """Says what stays."""
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
    """The category's id, "" where it is made first."""
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
    """Names them, and is written first: what bears the tag by us is known, whenever a run ends."""


@dataclass(frozen=True, kw_only=True)
class RemoveTag(Step):
    """remove the tag {tag} of {category}, and the category where it is ours and holds no other"""

    rights = (holds("tags", f"{TAGGING}.DeleteTag", f"{TAGGING}.DeleteCategory"),)
    uses = (Use.DESTROY,)
    tag: str
    category: str
    id: str
    home: str
    """The category's id where it is the site's, else ""."""


@dataclass(frozen=True, kw_only=True)
class RemoveCategories(Step):
    """remove the empty category that was made for {name}"""

    rights = (holds("tags", f"{TAGGING}.DeleteCategory"),)
    uses = (Use.DESTROY,)
    name: str
    ids: tuple[str, ...]
