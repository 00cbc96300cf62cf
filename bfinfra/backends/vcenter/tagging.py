"""Tags, their categories, and the objects that have them. The API knows them by id only, so each is one
request. Source: com.vmware.cis.tagging.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.words import safe
from bfinfra.model.errors import Malformed, Missing, Rejected
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

CATEGORIES = "/api/cis/tagging/category"
TAGS = "/api/cis/tagging/tag"
BEARERS = "/api/cis/tagging/tag-association"
DATASTORE = "Datastore"
AT_ONCE = 8  # details read in parallel: the API has no bulk form


@dataclass(frozen=True, slots=True)
class Tag:
    """`bearers`: types and ids of the objects that have it."""

    id: str
    name: str
    description: str = ""
    bearers: frozenset[tuple[str, str]] = frozenset()

    @property
    def datastores(self) -> frozenset[str]:
        """The ids of the datastores that have it."""
        return frozenset(identity for sort, identity in self.bearers if sort == DATASTORE)


@dataclass(frozen=True, slots=True)
class Category:
    """`single`: an object has at most one of its tags; `types`: the types that its tags are for, () for
    all.
    """

    id: str
    name: str
    description: str = ""
    single: bool = False
    types: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()

    def tag(self, name: str) -> Tag | None:
        """The tag with that name."""
        return next((each for each in self.tags if each.name == name), None)


class Tagging:
    """The tags of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def read(self, wanted: Callable[[str, str], bool]) -> tuple[Category, ...]:
        """The categories that `wanted` accepts by name and description, with their tags and the objects that
        have them.
        """
        try:
            listed = _each(
                self._rest.get(CATEGORIES), lambda each: self._rest.get(f"{CATEGORIES}/{quote(each)}")
            )
            homes = [each for each in listed if wanted(str(each["name"]), str(each.get("description") or ""))]
            tags = {str(each["id"]): self._tags(str(each["id"])) for each in homes}
            bearers = self._bearers([str(tag["id"]) for found in tags.values() for tag in found])
            return tuple(
                _category(each, [_tag(tag, bearers) for tag in tags[str(each["id"])]]) for each in homes
            )
        except (KeyError, TypeError, AttributeError):
            raise Malformed(
                "the tags can't be read", server=self._rest.server, why="no names and ids"
            ) from None

    def _tags(self, category: str) -> Sequence[Mapping[str, Any]]:
        try:
            ids = self._ids_of(category)
        except Missing:
            return ()
        return _each(ids, lambda each: self._rest.get(f"{TAGS}/{quote(each)}"))

    def _ids_of(self, category: str) -> Sequence[str]:
        found: Sequence[str] = self._rest.post(
            TAGS, {"category_id": category}, params={"action": "list-tags-for-category"}
        )
        return found

    def _bearers(self, tags: Sequence[str]) -> Mapping[str, frozenset[tuple[str, str]]]:
        """Tag → its objects. Tags deleted meanwhile are left out."""
        action = {"action": "list-attached-objects-on-tags"}
        try:
            found = self._rest.post(BEARERS, {"tag_ids": list(tags)}, params=action) if tags else ()
        except Missing:  # one is gone, and vCenter doesn't answer for the others
            alone = [self._bearers([tag]) for tag in tags] if len(tags) > 1 else []
            return {tag: bearers for each in alone for tag, bearers in each.items()}
        return {
            str(each["tag_id"]): frozenset((str(on["type"]), str(on["id"])) for on in each["object_ids"])
            for each in found
        }

    def make_category(self, name: str, description: str) -> str:
        """Make a category of tags for datastores, which may have several; returns its id. Raises Exists if
        the name is taken.
        """
        return str(
            self._rest.post(
                CATEGORIES,
                {
                    "name": name,
                    "description": description,
                    "cardinality": "MULTIPLE",
                    "associable_types": [DATASTORE],
                },
            )
        )

    def make_tag(self, category: str, name: str, description: str) -> str:
        """Make a tag in the category with this id; returns its id. Raises Exists if the name is taken."""
        return str(self._rest.post(TAGS, {"name": name, "description": description, "category_id": category}))

    def describe(self, tag: str, description: str) -> None:
        """Set a tag's description."""
        self._rest.patch(f"{TAGS}/{quote(tag)}", {"description": description})

    def attach(self, tag: str, datastores: Iterable[str]) -> None:
        """Add the tag to datastores, by id. Fine if they have it."""
        objects = [{"id": each, "type": DATASTORE} for each in datastores]
        found = self._rest.post(
            f"{BEARERS}/{quote(tag)}",
            {"object_ids": objects},
            params={"action": "attach-tag-to-multiple-objects"},
        )
        if not (found or {}).get("success"):
            words = [
                str(each.get("default_message", "")) for each in (found or {}).get("error_messages") or ()
            ]
            raise Rejected(
                "the tag can't be put on all datastores",
                server=self._rest.server,
                why=safe("; ".join(filter(None, words))),
            )

    def detach(self, tag: str, datastores: Iterable[str]) -> None:
        """Remove the tag from datastores, by id. Fine if they don't have it."""
        for each in datastores:
            self._rest.post(
                f"{BEARERS}/{quote(tag)}",
                {"object_id": {"id": each, "type": DATASTORE}},
                params={"action": "detach"},
            )

    def remove(self, tag: str) -> None:
        """Delete a tag, also from its objects. One that is already gone is fine."""
        with contextlib.suppress(Missing):
            self._rest.delete(f"{TAGS}/{quote(tag)}")

    def remove_empty(self, category: str) -> None:
        """Delete a category without tags; one with tags is kept, one that is already gone is fine."""
        with contextlib.suppress(Missing):
            if not self._ids_of(category):
                self._rest.delete(f"{CATEGORIES}/{quote(category)}")


def _each(ids: object, ask: Callable[[str], Any]) -> Sequence[Mapping[str, Any]]:
    """All of them, without those deleted meanwhile. Each costs a request, so what is no list of ids raises
    TypeError before the first.
    """
    if not (isinstance(ids, list) and all(isinstance(each, str) for each in ids)):
        raise TypeError

    def one(identity: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = ask(identity)
        except Missing:
            return None
        return found

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [each for each in pool.map(one, ids) if each is not None]


def _tag(found: Mapping[str, object], bearers: Mapping[str, frozenset[tuple[str, str]]]) -> Tag:
    identity = str(found["id"])
    return Tag(
        identity, str(found["name"]), str(found.get("description") or ""), bearers.get(identity, frozenset())
    )


def _category(found: Mapping[str, Any], tags: Sequence[Tag]) -> Category:
    types = tuple(map(str, found.get("associable_types") or ()))
    return Category(
        str(found["id"]),
        str(found["name"]),
        str(found.get("description") or ""),
        found.get("cardinality") == "SINGLE",
        types,
        tuple(tags),
    )
