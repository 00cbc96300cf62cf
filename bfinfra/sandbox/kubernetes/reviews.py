"""Questions about rights and identities: access, rules and token reviews, and tokens for service accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.errors import Cause, bad_request, invalid, not_found
from bfinfra.sandbox.kubernetes.identity import User
from bfinfra.sandbox.kubernetes.objects import Object, dig, stamp
from bfinfra.sandbox.kubernetes.rbac import Ask
from bfinfra.sandbox.kubernetes.target import Target

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

HOUR = 3600.0


def answers(target: Target) -> bool:
    """True for a create that stores nothing but is answered."""
    plural = target.resource.plural
    return target.verb == "create" and (
        plural.endswith("reviews") or (plural == "serviceaccounts" and target.subresource == "token")
    )


def answer(cluster: ClusterState, target: Target, body: object, user: User) -> Object:
    """The review with its status."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized: not a JSON object")
    spec: Object = body.get("spec") or {}
    if target.subresource == "token":
        status: Any = _account_token(cluster, target, spec)
        kind = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
    else:
        status = _status(cluster, target, spec, user)
        kind = {"kind": target.resource.kind, "apiVersion": target.resource.api_version}
    return {**kind, "metadata": body.get("metadata") or {}, "spec": spec, "status": status}


def _status(cluster: ClusterState, target: Target, spec: Object, user: User) -> Object:
    plural = target.resource.plural
    if plural == "selfsubjectreviews":
        return {"userInfo": {"username": user.name, "groups": list(user.all_groups)}}
    if plural == "tokenreviews":
        found = cluster.authenticate(spec.get("token", ""))
        return (
            {"authenticated": True, "user": {"username": found.name, "groups": list(found.all_groups)}}
            if found
            else {"user": {}}
        )
    if plural == "selfsubjectrulesreviews":
        return _rules(cluster, spec, user)
    who = (
        user
        if plural == "selfsubjectaccessreviews"
        else User(spec.get("user", ""), tuple(spec.get("groups") or ()))
    )
    namespace = target.namespace or dig(spec, "resourceAttributes", "namespace", default="")
    allowed = cluster.authorizer.allows(who, _ask(spec, namespace))
    return {"allowed": allowed} if allowed else {"allowed": False, "reason": ""}


def _ask(spec: Object, namespace: str) -> Ask:
    wanted = spec.get("resourceAttributes")
    if not wanted:
        cause = Cause(
            "FieldValueRequired",
            "Required value: only resourceAttributes are answered here",
            "spec.resourceAttributes",
        )
        raise invalid("SelfSubjectAccessReview", "authorization.k8s.io", "", [cause])
    return Ask(
        wanted.get("verb", ""),
        wanted.get("group", ""),
        wanted.get("resource", ""),
        wanted.get("subresource", ""),
        namespace,
        wanted.get("name", ""),
    )


def _rules(cluster: ClusterState, spec: Object, user: User) -> Object:
    rules = list(cluster.authorizer.rules(user, spec.get("namespace", "")))
    resources = [
        {key: rule[key] for key in ("verbs", "apiGroups", "resources", "resourceNames") if key in rule}
        for rule in rules
        if "resources" in rule
    ]
    others = [
        {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
        for rule in rules
        if "nonResourceURLs" in rule
    ]
    return {"resourceRules": resources, "nonResourceRules": others, "incomplete": False}


def _account_token(cluster: ClusterState, target: Target, spec: Object) -> Object:
    if cluster.store.get(("", "serviceaccounts"), target.namespace, target.name) is None:
        raise not_found("serviceaccounts", "", target.name)
    seconds = float(spec.get("expirationSeconds") or HOUR)
    return {
        "token": cluster.account_token(target.namespace, target.name, seconds),
        "expirationTimestamp": stamp(cluster.clock.now() + seconds),
    }
