"""Tags, their categories, and what they are attached to. Source: com.vmware.cis.tagging."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import Shape, check

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory
    from bfinfra.sandbox.rest.state import Info

CATEGORY, TAG, ASSOCIATION = "/cis/tagging/category", "/cis/tagging/tag", "/cis/tagging/tag-association"
CARDINALITY = ("SINGLE", "MULTIPLE")
NEW_CATEGORY = {
    "name": str,
    "description": str,
    "cardinality": CARDINALITY,
    "associable_types": [str],
    "category_id?": str,
}
CATEGORY_CHANGE = {"name?": str, "description?": str, "cardinality?": CARDINALITY, "associable_types?": [str]}
NEW_TAG = {"name": str, "description": str, "category_id": str, "tag_id?": str}
TAG_CHANGE = {"name?": str, "description?": str}
OBJECT = {"id": str, "type": str}
RIGHT = "InventoryService.Tagging"


@route("GET", CATEGORY)
def categories(call: Call) -> list[str]:
    """Ids of all."""
    return list(call.state.categories)


@route("POST", CATEGORY)
def create_category(call: Call) -> str:
    """A new category; its id."""
    return _made(
        call, call.state.categories, "Category", NEW_CATEGORY, lambda _: call.state.categories.values()
    )


@route("GET", CATEGORY + "/{category}")
def category(call: Call, category: str) -> Info:
    """One object by its id."""
    return _found(call.state.categories, "The category", category)


@route("PATCH", CATEGORY + "/{category}")
def update_category(call: Call, category: str) -> None:
    """Change it. INVALID_ARGUMENT where it would allow less than before."""
    call.need(f"{RIGHT}.EditCategory", category)
    spec = check(call.spec, CATEGORY_CHANGE)
    with call.state.lock:
        found = _found(call.state.categories, "The category", category)
        _free(spec.get("name", ""), (each for each in call.state.categories.values() if each is not found))
        fewer = (
            "associable_types" in spec
            and found["associable_types"]
            and set(found["associable_types"]) - set(spec["associable_types"] or found["associable_types"])
        )
        if fewer or (found["cardinality"], spec.get("cardinality")) == ("MULTIPLE", "SINGLE"):
            raise Refused("INVALID_ARGUMENT", "A category can only come to allow more.")
        found.update(spec)


@route("DELETE", CATEGORY + "/{category}")
def delete_category(call: Call, category: str) -> None:
    """Remove it with its tags."""
    call.need(f"{RIGHT}.DeleteCategory", category)
    with call.state.lock:
        _found(call.state.categories, "The category", category)
        del call.state.categories[category]
        for tag in [
            identity for identity, each in call.state.tags.items() if each["category_id"] == category
        ]:
            _drop(call, tag)


@route("GET", TAG)
def tags(call: Call) -> list[str]:
    """Ids of all."""
    return list(call.state.tags)


@route("POST", TAG, "list-tags-for-category")
def tags_in(call: Call) -> list[str]:
    """Ids of a category's."""
    found: list[str] = tags_of(call, check(call.spec, {"category_id": str})["category_id"])
    return found


@route("POST", TAG + "/{category}", "list-tags-for-category")
def tags_of(call: Call, category: str) -> list[str]:
    """The same, as /rest and govc ask for it."""
    _found(call.state.categories, "The category", category)
    return [identity for identity, each in call.state.tags.items() if each["category_id"] == category]


@route("POST", TAG)
def create_tag(call: Call) -> str:
    """A new tag; its id. ALREADY_EXISTS where its category has one of that name."""

    def rivals(spec: Info) -> Iterable[Info]:
        _found(call.state.categories, "The category", spec["category_id"])
        return (each for each in call.state.tags.values() if each["category_id"] == spec["category_id"])

    return _made(call, call.state.tags, "Tag", NEW_TAG, rivals)


@route("GET", TAG + "/{tag}")
def tag(call: Call, tag: str) -> Info:
    """One object by its id."""
    return _found(call.state.tags, "The tag", tag)


@route("PATCH", TAG + "/{tag}")
def update_tag(call: Call, tag: str) -> None:
    """Another name or description."""
    call.need(f"{RIGHT}.EditTag", tag)
    spec = check(call.spec, TAG_CHANGE)
    with call.state.lock:
        found = _found(call.state.tags, "The tag", tag)
        _free(
            spec.get("name", ""),
            (
                each
                for each in call.state.tags.values()
                if each is not found and each["category_id"] == found["category_id"]
            ),
        )
        found.update(spec)


@route("DELETE", TAG + "/{tag}")
def delete_tag(call: Call, tag: str) -> None:
    """Remove it from everything."""
    call.need(f"{RIGHT}.DeleteTag", tag)
    with call.state.lock:
        _found(call.state.tags, "The tag", tag)
        _drop(call, tag)


@route("POST", ASSOCIATION + "/{tag}", "attach")
def attach(call: Call, tag: str) -> None:
    """To one object. INVALID_ARGUMENT where the category allows neither its type nor a second tag."""
    _attach(call, tag, check(call.spec, {"object_id": OBJECT})["object_id"])


@route("POST", ASSOCIATION + "/{tag}", "detach")
def detach(call: Call, tag: str) -> None:
    """From one object; harmless where it isn't on it."""
    _detach(call, tag, check(call.spec, {"object_id": OBJECT})["object_id"])


@route("POST", ASSOCIATION + "/{tag}", "list-attached-objects")
def objects_with(call: Call, tag: str) -> list[Info]:
    """Return the objects that have this tag and still exist."""
    _found(call.state.tags, "The tag", tag)
    return [each for each in call.state.attached.get(tag, []) if each["id"] in call.inventory.objects]


@route("POST", ASSOCIATION, "list-attached-tags")
def tags_on(call: Call) -> list[str]:
    """Ids of an object's."""
    return _tags_on(call, _object(call, check(call.spec, {"object_id": OBJECT})["object_id"]))


@route("POST", ASSOCIATION, "list-attached-objects-on-tags")
def objects_of_each(call: Call) -> list[Info]:
    """Several tags' objects."""
    return [
        {"tag_id": each, "object_ids": objects_with(call, each)}
        for each in check(call.spec, {"tag_ids": [str]})["tag_ids"]
    ]


@route("POST", ASSOCIATION, "list-attached-tags-on-objects")
def tags_of_each(call: Call) -> list[Info]:
    """Several objects' tags."""
    return [
        {"object_id": each, "tag_ids": _tags_on(call, each)}
        for each in check(call.spec, {"object_ids": [OBJECT]})["object_ids"]
    ]


@route("POST", ASSOCIATION + "/{tag}", "attach-tag-to-multiple-objects")
def attach_to_each(call: Call, tag: str) -> Info:
    """One tag to several objects."""
    return _each(
        _attach, call, [(tag, each) for each in check(call.spec, {"object_ids": [OBJECT]})["object_ids"]]
    )


@route("POST", ASSOCIATION, "attach-multiple-tags-to-object")
def attach_each(call: Call) -> Info:
    """Several tags to one object."""
    spec = check(call.spec, {"object_id": OBJECT, "tag_ids": [str]})
    return _each(_attach, call, [(each, spec["object_id"]) for each in spec["tag_ids"]])


@route("POST", ASSOCIATION, "detach-multiple-tags-from-object")
def detach_each(call: Call) -> Info:
    """Several tags from one object."""
    spec = check(call.spec, {"object_id": OBJECT, "tag_ids": [str]})
    return _each(_detach, call, [(each, spec["object_id"]) for each in spec["tag_ids"]])


def tagged(inventory: Inventory) -> tuple[dict[str, Info], dict[str, Info], dict[str, list[Info]]]:
    """Add the world's categories and tags, and assign the tags."""
    categories: dict[str, Info] = {}
    tags: dict[str, Info] = {}
    attached: dict[str, list[Info]] = {}
    for category, found in inventory.world.tags.items():
        home = _add(
            categories,
            "Category",
            "",
            {
                "name": category,
                "description": "",
                "cardinality": "MULTIPLE",
                "associable_types": ["Datastore"],
            },
        )
        for tag, names in found.items():
            made = _add(tags, "Tag", "", {"name": tag, "description": "", "category_id": home})
            attached[made] = [
                {"id": each.moid, "type": "Datastore"}
                for each in inventory.datastores()
                if each.name in names
            ]
    return categories, tags, attached


def _attach(call: Call, tag: str, thing: Info) -> None:
    call.need(f"{RIGHT}.AttachTag", thing["id"])
    with call.state.lock:
        found = _found(call.state.tags, "The tag", tag)
        of = call.state.categories[found["category_id"]]
        if of["associable_types"] and _object(call, thing)["type"] not in of["associable_types"]:
            raise Refused(
                "INVALID_ARGUMENT", f"The category {of['name']} is not for objects of type {thing['type']}."
            )
        others = [
            each
            for each in _tags_on(call, thing)
            if each != tag and call.state.tags[each]["category_id"] == found["category_id"]
        ]
        if others and of["cardinality"] == "SINGLE":
            raise Refused(
                "INVALID_ARGUMENT", f"The object has a tag of the category {of['name']}, which allows one."
            )
        held = call.state.attached.setdefault(tag, [])
        if _object(call, thing) not in held:
            held.append(thing)


def _detach(call: Call, tag: str, thing: Info) -> None:
    call.need(f"{RIGHT}.AttachTag", thing["id"])
    with call.state.lock:
        _found(call.state.tags, "The tag", tag)
        call.state.attached[tag] = [each for each in call.state.attached.get(tag, []) if each != thing]


def _each(what: Callable[[Call, str, Info], None], call: Call, pairs: list[tuple[str, Info]]) -> Info:
    """Does those that can be done; answers with the others."""
    wrong = []
    for tag, thing in pairs:
        try:
            what(call, tag, thing)
        except Refused as error:
            wrong.append(
                {
                    "id": f"com.vmware.vapi.std.errors.{error.kind.lower()}",
                    "default_message": str(error),
                    "args": [tag],
                }
            )
    return {"success": not wrong, "error_messages": wrong}


def _tags_on(call: Call, thing: Info) -> list[str]:
    return [tag for tag, held in call.state.attached.items() if thing in held]


def _object(call: Call, thing: Info) -> Info:
    if thing["id"] not in call.inventory.objects:
        raise missing("The object", thing["id"])
    return thing


def _made(
    call: Call, kept: dict[str, Info], what: str, shape: Shape, rivals: Callable[[Info], Iterable[Info]]
) -> str:
    """The id of a new one, whose name none of its rivals has."""
    call.need(f"{RIGHT}.Create{what}", what)
    spec = check(call.spec, shape)
    with call.state.lock:
        _free(spec["name"], rivals(spec))
        return _add(kept, what, spec.pop(f"{what.lower()}_id", ""), spec)


def _free(name: str, others: Iterable[Info]) -> None:
    if any(each["name"] == name for each in others):
        raise Refused("ALREADY_EXISTS", f"The name '{name}' is taken.")


def _add(where: dict[str, Info], what: str, identity: str, spec: Mapping[str, object]) -> str:
    prefix = f"urn:vmomi:InventoryService{what}:"
    if identity and not identity.startswith(prefix):
        raise Refused("INVALID_ARGUMENT", f"{identity[:80]} does not begin with {prefix}")
    identity = identity or f"{prefix}{uuid.uuid4()}:GLOBAL"
    where[identity] = {"id": identity, **spec, "used_by": []}
    return identity


def _found(where: dict[str, Info], what: str, identity: str) -> Info:
    if identity not in where:
        raise missing(what, identity)
    return where[identity]


def _drop(call: Call, tag: str) -> None:
    del call.state.tags[tag]
    call.state.attached.pop(tag, None)
