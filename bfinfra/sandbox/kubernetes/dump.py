"""The contents of a store without what is generated: two equal clusters dump equal."""

from __future__ import annotations

import json
import re
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.store import Store

HIDDEN = {
    "uid",
    "resourceVersion",
    "managedFields",
    "time",
    "podIP",
    "podIPs",
    "generation",
    "observedGeneration",
}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
GENERATED = ("cluster.x-k8s.io/secret",)  # Secrets whose content is generated for each cluster


def dump(store: Store) -> dict[str, Any]:
    """{resource: objects}; events are left out."""
    with store.lock:
        held = {
            f"{plural}.{group}" if group else plural: store.all((group, plural))
            for group, plural in store.held()
            if plural != "events"
        }
        known = store.dumped  # the store changes no object in place
        store.dumped = {
            id(thing): known.get(id(thing)) or _Dumped(thing) for things in held.values() for thing in things
        }
        dumped = store.dumped
    return {
        resource: [each.bare for each in sorted((dumped[id(thing)] for thing in things), key=_text)]
        for resource, things in held.items()
    }


class _Dumped:
    """The shown part of an object. The object is kept, so that no other gets its id."""

    def __init__(self, thing: Object) -> None:
        self.thing, self.bare = thing, _bare(_named(thing))
        self.text = json.dumps(self.bare)


def _text(dumped: _Dumped) -> str:
    return dumped.text


def _named(thing: Object) -> Object:
    metadata = thing["metadata"]
    owner = next(
        (each["name"] for each in metadata.get("ownerReferences") or [] if each.get("controller")), ""
    )
    if owner and thing["kind"] == "Pod":
        thing = {**thing, "metadata": {**metadata, "name": f"{owner}-*"}}
    if thing["kind"] in ("ResourceClaim", "ResourceSlice") and metadata.get("generateName"):
        thing = {**thing, "metadata": {**metadata, **_claim(metadata)}}
    if users := dig(thing, "status", "reservedFor"):
        thing = {
            **thing,
            "status": {**thing["status"], "reservedFor": [{**each, "name": "*"} for each in users]},
        }
    if made := dig(thing, "status", "resourceClaimStatuses"):
        known = [{**each, "resourceClaimName": "*"} for each in made]
        thing = {**thing, "status": {**thing["status"], "resourceClaimStatuses": known}}
    return {**thing, "data": "*"} if thing.get("type") in GENERATED else thing


def _claim(metadata: Object) -> Object:
    """The names of an object that has a generated one, after that of a pod which may be generated too."""
    owners = metadata.get("ownerReferences") or []
    if any(each["kind"] == "Pod" for each in owners):
        return {
            "name": "*",
            "generateName": "*",
            "ownerReferences": [{**each, "name": "*"} for each in owners],
        }
    return {"name": f"{metadata['generateName']}*"}


def _bare(thing: object) -> Any:
    if isinstance(thing, list):
        return [_bare(each) for each in thing]
    if isinstance(thing, dict):
        kept = {
            key: _bare(value)
            for key, value in sorted(thing.items())
            if key not in HIDDEN and not key.endswith(("Timestamp", "Time", "At"))
        }
        return {key: value for key, value in kept.items() if value != {}}
    return UUID.sub("*", thing) if isinstance(thing, str) else thing
