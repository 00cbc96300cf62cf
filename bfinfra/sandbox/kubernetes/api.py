"""The handler of an API server: authentication, authorization, route, action."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from bfinfra.sandbox.handler import Request, Response, as_json
from bfinfra.sandbox.kubernetes import deletion, discovery, evictions, protobuf, reads, reviews, scale
from bfinfra.sandbox.kubernetes import target as targets
from bfinfra.sandbox.kubernetes.errors import (
    Cause,
    Refused,
    bad_request,
    invalid,
    unauthorized,
    unsupported_media_type,
)
from bfinfra.sandbox.kubernetes.identity import User
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of
from bfinfra.sandbox.kubernetes.patches import json_patch, merge_patch, strategic_patch
from bfinfra.sandbox.kubernetes.rbac import ask_of
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.writes import Writer

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
READS = {"get": reads.get, "list": reads.listed, "watch": reads.watch}


def serve(cluster: AdmittingCluster, request: Request) -> Response:
    """The answer to one request."""
    try:
        return _serve(cluster, request)
    except Refused as refused:
        return refused.response()


def _serve(cluster: AdmittingCluster, request: Request) -> Response:
    if request.path.rstrip("/") in discovery.PUBLIC:
        return discovery.answer(request, cluster.registry, cluster.version)
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    user = cluster.authenticate(token.strip()) if scheme.lower() == "bearer" else None
    if user is None:
        raise unauthorized()
    ask = ask_of(request)
    if ask is not None:
        cluster.authorizer.require(user, ask)
    target = targets.read(request, cluster.registry)
    if target is None:
        return discovery.answer(request, cluster.registry, cluster.version)
    return _handle(cluster, target, request, user)


def _handle(cluster: AdmittingCluster, target: Target, request: Request, user: User) -> Response:
    if reviews.answers(target):
        return as_json(reviews.answer(cluster, target, body_of(request), user), 201)
    special = cluster.endpoints.get((*target.resource.key, target.subresource))
    if special:
        return special(target, request, user)
    if kind := scale.kind_of(target):
        return _other_kind(cluster, target, kind, request, targets.options(request, user))
    if read := READS.get(target.verb):
        return read(cluster, target, request)
    return _write(cluster, target, request, targets.options(request, user))


def _other_kind(
    cluster: AdmittingCluster, target: Target, kind: str, request: Request, options: Options
) -> Response:
    """A subresource with a kind of its own."""
    if kind == "Eviction":
        return as_json(evictions.answer(cluster, target, body_of(request), options), 201)
    if kind != "Scale":
        raise scale.refuse(target)
    body = None if target.verb == "get" else body_of(request)
    return as_json(
        scale.answer(
            cluster, target, request.headers.get("content-type", "").partition(";")[0].strip(), body, options
        )
    )


def _write(cluster: AdmittingCluster, target: Target, request: Request, options: Options) -> Response:
    writer = Writer(cluster)
    status = 200
    if target.verb == "create":
        thing, status = writer.create(target, body_of(request), options), 201
    elif target.verb == "update":
        thing = writer.update(target, body_of(request), options)
    elif target.verb == "patch":
        thing, status = _patch(cluster, target, request, options)
    elif target.verb == "delete":
        thing = deletion.delete(cluster, target, _delete_options(request), options)
    else:
        return _delete_all(cluster, target, request, options)
    writer.warnings += cluster.warnings()
    warnings = ", ".join(
        f'299 - "{text}"'
        for text in (each.replace("\\", "\\\\").replace('"', '\\"') for each in writer.warnings)
    )
    return as_json(thing, status, **({"warning": warnings} if warnings else {}))


def _patch(
    cluster: AdmittingCluster, target: Target, request: Request, options: Options
) -> tuple[Object, int]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    writer, sent = Writer(cluster), body_of(request)
    if kind == APPLY:
        if not request.params.get("fieldManager"):
            cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
        ask = ask_of(request)
        if ask and not cluster.store.get(target.resource.key, target.namespace, target.name):
            cluster.authorizer.require(options.user, replace(ask, verb="create"))
        thing, new = writer.apply(target, sent, options)
        return thing, 201 if new else 200
    if kind == MERGE:
        return writer.patch(target, lambda live: merge_patch(live, sent), options), 200
    if kind == STRATEGIC and not target.resource.custom:
        return writer.patch(
            target, lambda live: strategic_patch(target.resource.type, live, sent), options
        ), 200
    if kind == JSON:
        return writer.patch(target, lambda live: json_patch(live, sent), options), 200
    raise unsupported_media_type(f"{JSON}, {MERGE}, {APPLY}" if target.resource.custom else "")


def _delete_options(request: Request) -> Object:
    body = body_of(request, empty=True) or {}
    params = request.params
    grace = (
        {"gracePeriodSeconds": int(params["gracePeriodSeconds"])}
        if params.get("gracePeriodSeconds", "").isdigit()
        else {}
    )
    policy = {"propagationPolicy": params["propagationPolicy"]} if params.get("propagationPolicy") else {}
    return {**body, **grace, **policy}


def _delete_all(cluster: AdmittingCluster, target: Target, request: Request, options: Options) -> Response:
    matches, wanted = reads.selection(target, request), _delete_options(request)
    things = [thing for thing in cluster.store.all(target.resource.key, target.namespace) if matches(thing)]
    for thing in things:
        deletion.delete(
            cluster, Target(target.resource, "delete", namespace_of(thing), name_of(thing)), wanted, options
        )
    metadata = {"resourceVersion": str(cluster.store.revision)}
    items = [target.resource.read(thing) for thing in things]
    return as_json(
        {
            "kind": f"{target.resource.kind}List",
            "apiVersion": target.resource.api_version,
            "metadata": metadata,
            "items": items,
        }
    )


def body_of(request: Request, *, empty: bool = False) -> Any:
    """The body, JSON or YAML. Refused (400) where it is neither."""
    data = request.body.read()
    if not data.strip():
        if empty:
            return None
        raise bad_request("the body of the request was empty")
    kind = request.headers.get("content-type", "")
    if "protobuf" in kind:
        return _protobuf(data)
    try:
        return yaml.safe_load(data) if "yaml" in kind and data.lstrip()[:1] != b"{" else json.loads(data)
    except (ValueError, yaml.YAMLError) as broken:
        raise bad_request(f"the object provided is unrecognized: json parse error: {broken}") from broken


def _protobuf(data: bytes) -> Any:
    try:
        found = protobuf.decode(data)
    except ValueError as broken:
        raise bad_request(f"the object provided is unrecognized: {broken}") from broken
    if found is None:
        raise unsupported_media_type("application/json, application/yaml")
    return found
