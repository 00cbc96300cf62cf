"""Write bfinfra/sandbox/kubernetes/schema.json: types and resources as a live kube-apiserver declares them,
without its prose.

    python script/kube_schema.py KUBECONFIG-PROXY-URL > bfinfra/sandbox/kubernetes/schema.json

The URL is that of `kubectl proxy`, so that this script needs no credentials.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.request import urlopen

GROUP_VERSIONS = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
)
PREFIX = "#/components/schemas/"
KEYWORDS = {
    "type",
    "format",
    "required",
    "enum",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
}
FORMATS = {"byte", "int-or-string"}


def main(root: str) -> None:
    """Everything on one line per type and per group version, sorted, so that a change reads well."""
    types: dict[str, Any] = {}
    resources = {}
    for version in GROUP_VERSIONS:
        path = f"api/{version}" if version == "v1" else f"apis/{version}"
        document = ask(root, f"openapi/v3/{path}")
        schemas, kinds = document["components"]["schemas"], kind_types(document["components"]["schemas"])
        resources[version] = [resource(row, version, kinds) for row in ask(root, path)["resources"]]
        for name in sorted(reachable(schemas, {row["type"] for row in resources[version] if row["type"]})):
            types[name] = shrink(schemas[name])
    print('{"resources": {')
    print(",\n".join(f"{json.dumps(key)}: {json.dumps(rows)}" for key, rows in sorted(resources.items())))
    print('}, "types": {')
    print(",\n".join(f"{json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)))
    print("}}")


def ask(root: str, path: str) -> Any:
    """One JSON document."""
    with urlopen(f"{root}/{path}") as answer:  # noqa: S310 - the caller's own proxy
        return json.load(answer)


def kind_types(schemas: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    """(group, version, kind) → the name of its schema."""
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas.items()
        if len(schema.get("x-kubernetes-group-version-kind", [])) == 1
        for gvk in schema["x-kubernetes-group-version-kind"]
    }


def resource(row: dict[str, Any], version: str, kinds: dict[tuple[str, str, str], str]) -> dict[str, Any]:
    """One resource as discovery shows it, with the name of its type."""
    group, _, short = version.rpartition("/")
    gvk = (row.get("group", group), row.get("version", short), row["kind"])
    kept = {
        key: row[key]
        for key in ("name", "singularName", "namespaced", "kind", "verbs", "shortNames", "categories")
        if row.get(key) is not None
    }
    return {**kept, "type": kinds.get(gvk, "")}


def reachable(schemas: dict[str, Any], names: set[str]) -> set[str]:
    """The named types and all that they refer to."""
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            names |= set(refs(schemas[name]))
    return seen


def refs(node: Any) -> list[str]:
    """Names of the types that this schema refers to."""
    if isinstance(node, dict):
        own = [node["$ref"].removeprefix(PREFIX)] if "$ref" in node and isinstance(node["$ref"], str) else []
        return own + [name for value in node.values() for name in refs(value)]
    return [name for value in node for name in refs(value)] if isinstance(node, list) else []


def shrink(node: dict[str, Any]) -> dict[str, Any]:
    """A schema without prose, zero defaults and formats that nothing checks."""
    if len(node.get("allOf", [])) == 1:
        node = {**node, **node["allOf"][0]}
    if "$ref" in node:
        return {"$ref": node["$ref"].removeprefix(PREFIX)}
    kept = {key: value for key, value in node.items() if key in KEYWORDS}
    if kept.get("format") not in FORMATS:
        kept.pop("format", None)
    if node.get("default"):
        kept["default"] = node["default"]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            kept[key] = shrink(node[key])
    if "properties" in node:
        kept["properties"] = {name: shrink(child) for name, child in node["properties"].items()}
    return kept


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
