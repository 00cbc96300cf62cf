"""A cluster's API as far as the operator uses it, in memory: what was written, and whether it may be."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from bfinfra.model.errors import Conflict, Exists, Missing, RemoteError

Object = dict[str, Any]


class FakeApi:
    """`calls`: (verb, kind, name) of each request; `fails`: raised by the next ones."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.fails: list[RemoteError] = []
        self._version = 0

    def kinds(self, kind: str) -> list[Object]:
        return [each for (known, _, _), each in self.objects.items() if known == kind]

    def list(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[Object]:
        self._called("list", kind, "")
        wanted = dict(part.split("=") for part in labels.split(",") if part)
        return [
            copy.deepcopy(each)
            for each in self.kinds(kind)
            if wanted.items() <= (each["metadata"].get("labels") or {}).items()
        ]

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        self._called("get", kind, name)
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    def create(self, manifest: Mapping[str, Any]) -> Object:
        made = copy.deepcopy(dict(manifest))
        meta = made["metadata"]
        meta.setdefault("name", f"{meta.get('generateName', '')}{len(self.objects)}")
        self._called("create", made["kind"], meta["name"])
        key = made["kind"], meta.get("namespace", ""), meta["name"]
        if key in self.objects:
            raise Exists("create")
        return self._put(key, made)

    def patch(
        self, api_version: str, kind: str, name: str, body: Mapping[str, Any], namespace: str = ""
    ) -> Object:
        return self._patch("patch", kind, name, namespace, body)

    def patch_status(
        self, api_version: str, kind: str, name: str, status: Mapping[str, Any], namespace: str = ""
    ) -> Object:
        return self._patch("status", kind, name, namespace, {"status": dict(status)})

    def _patch(self, verb: str, kind: str, name: str, namespace: str, body: Mapping[str, Any]) -> Object:
        self._called(verb, kind, name)
        if (found := self.objects.get((kind, namespace, name))) is None:
            raise Missing("patch")
        if (seen := body.get("metadata", {}).get("resourceVersion")) and seen != found["metadata"][
            "resourceVersion"
        ]:
            raise Conflict("patch")
        return self._put((kind, namespace, name), merged(found, body))

    def _put(self, key: tuple[str, str, str], made: Object) -> Object:
        self._version += 1
        made["metadata"]["resourceVersion"] = str(self._version)
        self.objects[key] = made
        return copy.deepcopy(made)

    def _called(self, verb: str, kind: str, name: str) -> None:
        self.calls.append((verb, kind, name))
        if self.fails:
            raise self.fails.pop(0)


def merged(found: Any, body: Any) -> Any:
    """RFC 7386."""
    if not isinstance(body, Mapping):
        return body
    base = dict(found) if isinstance(found, Mapping) else {}
    for name, value in body.items():
        if value is None:
            base.pop(name, None)
        else:
            base[name] = merged(base.get(name), value)
    return base
