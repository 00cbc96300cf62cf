"""Discovery: /version, /api, /apis, their resources, and the OpenAPI documents that kubectl reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from bfinfra.sandbox.handler import Request, Response, as_json
from bfinfra.sandbox.kubernetes.errors import no_such_path
from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.registry import Registry, Resource
from bfinfra.sandbox.kubernetes.types import builtin

HEALTH = ("/healthz", "/livez", "/readyz")
PUBLIC = ("/version", *HEALTH)
"""Paths that need no token."""


def answer(request: Request, registry: Registry, version: str) -> Response:  # noqa: PLR0911 - one answer a path
    """The answer to a path that is no resource."""
    path = request.path.rstrip("/")
    parts = path.strip("/").split("/")
    if path in HEALTH:
        return Response(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
    if path == "/version":
        return as_json(_version(version))
    if path == "/api":
        return as_json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    if path == "/apis":
        return as_json(
            {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_group(name, registry) for name in _groups(registry)],
            }
        )
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in _groups(registry):
        return as_json({"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], registry)})
    if path.startswith("/openapi/v3"):
        return _openapi(path.removeprefix("/openapi/v3").strip("/"), registry, version)
    served = {"/".join(("api", "v1") if key == "v1" else ("apis", key)): key for key in _versions(registry)}
    if path.strip("/") in served:
        return as_json(_resources(served[path.strip("/")], registry))
    return no_such_path()


def _version(version: str) -> Object:
    minor = version.lstrip("v").split(".")[1]
    return {
        "major": "1",
        "minor": minor,
        "gitVersion": version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2021-01-13T13:20:00Z",
        "goVersion": "go1.15.5",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _versions(registry: Registry) -> list[str]:
    return list(dict.fromkeys(each.api_version for each in registry.all()))


def _groups(registry: Registry) -> list[str]:
    return list(dict.fromkeys(key.rpartition("/")[0] for key in registry.named() if "/" in key))


def _group(name: str, registry: Registry) -> Object:
    versions = [
        {"groupVersion": key, "version": key.rpartition("/")[2]}
        for key in registry.named()
        if key.rpartition("/")[0] == name
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[-1]}


def _resources(api_version: str, registry: Registry) -> Object:
    rows: list[Object] = []
    for each in registry.all():
        if each.api_version == api_version:
            rows.append(_row(each, each.plural, each.singular, each.kind, each.verbs))
            rows += [
                _row(each, f"{each.plural}/{name}", "", kind, verbs)
                for name, (kind, verbs) in each.subresources.items()
            ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": rows}


def _row(each: Resource, name: str, singular: str, kind: str, verbs: tuple[str, ...]) -> Object:
    row: Object = {
        "name": name,
        "singularName": singular,
        "namespaced": each.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }
    if "/" not in name:
        row |= {
            key: list(value)
            for key, value in (("shortNames", each.short_names), ("categories", each.categories))
            if value
        }
    return row


def _openapi(path: str, registry: Registry, version: str) -> Response:
    served = {"/".join(("api", "v1") if key == "v1" else ("apis", key)): key for key in _versions(registry)}
    if not path:
        mark = hashlib.sha256(f"{version}{sorted(served)}".encode()).hexdigest().upper()
        return as_json(
            {"paths": {key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={mark}"} for key in served}}
        )
    if path not in served:
        return no_such_path()
    return as_json(
        _document([each for each in registry.all() if each.api_version == served[path]], path, version)
    )


def _document(resources: list[Resource], root: str, version: str) -> Object:
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for each in resources:
        name = each.type.name or ".".join([*reversed(each.group.split(".")), each.version, each.kind])
        kind = {"group": each.group, "version": each.version, "kind": each.kind}
        _collect(name, each.type.raw, schemas, each.type.lookup)
        schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [kind]}
        home = "namespaces/{namespace}/" if each.namespaced else ""
        paths[f"/{root}/{home}{each.plural}/{{name}}"] = {
            verb: {
                "x-kubernetes-group-version-kind": kind,
                "x-kubernetes-action": verb,
                "parameters": PARAMETERS,
                "responses": {},
            }
            for verb in ("get", "put", "patch", "delete")
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def _collect(name: str, raw: object, into: dict[str, Any], lookup: Callable[[str], Any]) -> None:
    if name not in into:
        into[name] = {}
        into[name] = _referring(raw, into, lookup)


def _referring(node: Any, into: dict[str, Any], lookup: Callable[[str], Any]) -> Any:
    if isinstance(node, list):
        return [_referring(each, into, lookup) for each in node]
    if not isinstance(node, dict) and not hasattr(node, "items"):
        return node
    if isinstance(node.get("$ref"), str) and node["$ref"] in builtin().types:
        _collect(node["$ref"], lookup(node["$ref"]), into, lookup)
        return {"$ref": f"#/components/schemas/{node['$ref']}"}
    return {key: _referring(value, into, lookup) for key, value in node.items()}
