"""The target of a request: the resource, the object and the verb, read from method, path and query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bfinfra.sandbox.handler import Request
from bfinfra.sandbox.kubernetes.errors import not_allowed
from bfinfra.sandbox.kubernetes.registry import Registry, Resource

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True)
class Target:
    """The resource that a request addresses. `namespace` and `name` are empty where the path has none."""

    resource: Resource
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True)
class Options:
    """The options of a write."""

    manager: str
    dry_run: bool = False
    force: bool = False
    validation: str = "Warn"
    user: Any = None  # None is the cluster itself


def read(request: Request, registry: Registry) -> Target | None:
    """The target of a request; None where no resource is served under its path. Raises Refused (405) if the
    resource has no such verb.
    """
    parts = [part for part in request.path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and registry.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, _verb(request, resource, name, subresource), namespace, name, subresource)


def _verb(request: Request, resource: Resource, name: str, subresource: str) -> str:
    verb = VERBS.get(request.method, "")
    if not name:
        verb = {"get": "watch" if is_watch(request) else "list", "delete": "deletecollection"}.get(verb, verb)
        if verb in ("update", "patch"):
            raise not_allowed()
    served = resource.subresources[subresource][1] if subresource else resource.verbs
    if verb not in served or (verb == "create" and name and not subresource):
        raise not_allowed()
    return verb


def is_watch(request: Request) -> bool:
    """Return whether a list continues after this page."""
    return request.params.get("watch", "") in ("1", "true")


def options(request: Request, user: object) -> Options:
    """The options of a write: field manager (else the caller's user agent), dry run, force, field
    validation.
    """
    params = request.params
    agent = request.headers.get("user-agent", "unknown").split("/")[0]
    return Options(
        manager=params.get("fieldManager") or agent,
        dry_run=params.get("dryRun") == "All",
        force=params.get("force", "") in ("1", "true", "True"),
        validation=params.get("fieldValidation") or "Warn",
        user=user,
    )
