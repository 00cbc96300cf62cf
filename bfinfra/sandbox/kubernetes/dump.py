"""The contents of a store without what is generated: two equal clusters dump equal."""

from __future__ import annotations

import json
import re
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object
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
GENERATED = ("cluster.x-k8s.io/secret",)  # Secrets whose content is made anew for each cluster


def dump(store: Store) -> dict[str, Any]:
    """{resource: objects}; events are left out."""
    with store.lock:
        return {
            f"{plural}.{group}" if group else plural: sorted(
                (_bare(_named(thing)) for thing in store.all((group, plural))), key=json.dumps
            )
            for group, plural in store.held()
            if plural != "events"
        }


def _named(thing: Object) -> Object:
    metadata = thing["metadata"]
    owner = next(
        (each["name"] for each in metadata.get("ownerReferences") or [] if each.get("controller")), ""
    )
    if owner and thing["kind"] == "Pod":
        thing = {**thing, "metadata": {**metadata, "name": f"{owner}-*"}}
    return {**thing, "data": "*"} if thing.get("type") in GENERATED else thing


def _bare(thing: Any) -> Any:
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
