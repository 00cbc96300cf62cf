"""Authorization by roles and bindings, read from the store as a real server reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bfinfra.sandbox.handler import Request
from bfinfra.sandbox.kubernetes.errors import Refused, forbidden
from bfinfra.sandbox.kubernetes.identity import MASTERS, User
from bfinfra.sandbox.kubernetes.objects import Object, namespace_of
from bfinfra.sandbox.kubernetes.store import Store
from bfinfra.sandbox.kubernetes.target import VERBS, is_watch

GROUP = "rbac.authorization.k8s.io"
EVERYBODY = [
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
]
OF_NAMESPACES = ("status", "finalize")
ALL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]


@dataclass(frozen=True)
class Ask:
    """One question: may this verb be done on this?"""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


def ask_of(request: Request) -> Ask | None:
    """The question that a request raises, by its path alone: rights are asked for before anybody looks what
    is served. None where the path is no resource's.
    """
    parts = [part for part in request.path.split("/") if part]
    start = {"api": 2, "apis": 3}.get(parts[0], 0) if parts else 0
    if not start or len(parts) <= start:
        return None
    group, rest, namespace = parts[1] if parts[0] == "apis" else "", parts[start:], ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace, rest = rest[1], rest[2:] if len(rest) > 2 and rest[2] not in OF_NAMESPACES else rest
    resource, name, subresource = [*rest, "", ""][:3]
    verb = VERBS.get(request.method, "")
    if not name:
        verb = {"get": "watch" if is_watch(request) else "list", "delete": "deletecollection"}.get(verb, verb)
    return Ask(verb, group, resource, subresource, namespace, name)


class Authorizer:
    """RBAC over the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: User, ask: Ask) -> bool:
        """True where some rule that binds the user covers the question."""
        return any(covers(rule, ask) for rule in self.rules(user, ask.namespace))

    def require(self, user: User, ask: Ask) -> None:
        """Raises Refused (403) if nothing allows the request."""
        if not self.allows(user, ask):
            raise denied(user, ask)

    def bound(self, user: User, namespace: str) -> bool:
        """Return whether some binding in the namespace itself names the user: on a supervisor, its access
        list.
        """
        own = self._store.all((GROUP, "rolebindings"), namespace)
        return MASTERS in user.groups or any(
            _is(subject, user, namespace) for each in own for subject in each.get("subjects") or []
        )

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """The rules that bind a user in a namespace ("" asks for the whole cluster only)."""
        if MASTERS in user.groups:
            yield from ALL
            return
        yield from EVERYBODY
        bindings = self._store.all((GROUP, "clusterrolebindings"))
        if namespace:
            bindings = [*bindings, *self._store.all((GROUP, "rolebindings"), namespace)]
        for binding in bindings:
            if any(_is(subject, user, namespace_of(binding)) for subject in binding.get("subjects") or []):
                yield from self._rules_of(binding)

    def _rules_of(self, binding: Object) -> list[Object]:
        return self.given(binding["roleRef"], namespace_of(binding)) or []

    def given(self, reference: Object, namespace: str) -> list[Object] | None:
        """The rules of the role that a binding in a namespace refers to; None where there is no such role."""
        role = self._store.get(
            (GROUP, f"{reference['kind'].lower()}s"),
            namespace if reference["kind"] == "Role" else "",
            reference["name"],
        )
        return None if role is None else list(role.get("rules") or [])


def denied(user: User, ask: Ask) -> Refused:
    """The 403 that names user, verb, resource and place."""
    thing = ask.resource + (f"/{ask.subresource}" if ask.subresource else "")
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {ask.verb} resource "{thing}" in API group "{ask.group}" {where}'
    return forbidden(ask.resource, ask.group, ask.name, why)


def _is(subject: Object, user: User, home: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace') or home}:{name}"
    return name == user.name if kind == "User" else name in user.all_groups


def covers(rule: Object, ask: Ask) -> bool:
    """Return whether a rule allows the request."""
    thing = f"{ask.resource}/{ask.subresource}" if ask.subresource else ask.resource
    resources = rule.get("resources") or []
    return (
        _has(rule.get("verbs"), ask.verb)
        and _has(rule.get("apiGroups"), ask.group)
        and (
            "*" in resources
            or thing in resources
            or (bool(ask.subresource) and f"*/{ask.subresource}" in resources)
        )
        and (not rule.get("resourceNames") or ask.name in rule["resourceNames"])
    )


def _has(values: list[str] | None, wanted: str) -> bool:
    return wanted in (values or []) or "*" in (values or [])
