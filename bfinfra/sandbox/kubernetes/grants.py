"""No user can grant more rights than they have: what a server checks when roles and bindings are written,
with `escalate` and `bind` as the ways round it.

The order, the words and that a POST has no name for `escalate` are kube-apiserver's, held against one in
tests/peers/test_rights.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from bfinfra.sandbox.kubernetes.errors import Refused, forbidden, not_found
from bfinfra.sandbox.kubernetes.identity import MASTERS, User
from bfinfra.sandbox.kubernetes.objects import Object, name_of
from bfinfra.sandbox.kubernetes.rbac import GROUP, Ask, Authorizer, covers
from bfinfra.sandbox.kubernetes.target import Target

ROLES, BINDINGS = ("roles", "clusterroles"), ("rolebindings", "clusterrolebindings")
OF_THE_COLLECTOR = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")


def check_grants(
    authorizer: Authorizer, user: User, target: Target, before: Object | None, after: Object
) -> None:
    """Raises Refused (403) if a role or binding gives what the user doesn't have, (404) where it binds a role
    that there isn't.
    """
    plural = target.resource.plural
    if (
        target.resource.group != GROUP
        or plural not in (*ROLES, *BINDINGS)
        or MASTERS in user.groups
        or (before is not None and _compared(before) == _compared(after))
    ):
        return
    rules: list[Object] | None
    if plural in ROLES:
        allowed, rules = (
            Ask("escalate", GROUP, plural, "", target.namespace, target.name),
            list(after.get("rules") or []),
        )
    else:
        allowed, rules = _bound(authorizer, target, after)
    if authorizer.allows(user, allowed):
        return
    if rules is None:
        raise not_found(plural, GROUP, name_of(after))
    own = list(authorizer.rules(user, target.namespace))
    missing = sorted({*_missing(rules, own)})
    if missing:
        raise _refusal(user, target, after, missing)


def _bound(authorizer: Authorizer, target: Target, binding: Object) -> tuple[Ask, list[Object] | None]:
    reference = binding["roleRef"]
    ask = Ask("bind", GROUP, f"{reference['kind'].lower()}s", "", target.namespace, reference["name"])
    return ask, authorizer.given(reference, target.namespace)


def _compared(thing: Object) -> Object:
    """All but what the garbage collector may change."""
    return {
        **thing,
        "metadata": {key: value for key, value in thing["metadata"].items() if key not in OF_THE_COLLECTOR},
    }


def _missing(rules: list[Object], own: list[Object]) -> Iterator[str]:
    """Each group's each resource, or object, with the verbs that are not held."""
    lacking: dict[tuple[str, str, str], list[str]] = {}
    for rule in rules:
        for path in rule.get("nonResourceURLs") or []:
            verbs = [verb for verb in rule["verbs"] if not any(_reaches(each, path, verb) for each in own)]
            if verbs:
                yield f"{{NonResourceURLs:{_words([path])}, Verbs:{_words(verbs)}}}"
        for key in _things(rule):
            group, thing, name = key
            resource, _, subresource = thing.partition("/")
            asks = {verb: Ask(verb, group, resource, subresource, name=name) for verb in rule["verbs"]}
            lacking.setdefault(key, []).extend(
                verb for verb, ask in asks.items() if not any(covers(each, ask) for each in own)
            )
    for (group, thing, name), verbs in lacking.items():
        if verbs:
            named = f", ResourceNames:{_words([name])}" if name else ""
            yield (
                f"{{APIGroups:{_words([group])}, Resources:{_words([thing])}{named}, Verbs:{_words(verbs)}}}"
            )


def _things(rule: Object) -> Iterator[tuple[str, str, str]]:
    for group in rule.get("apiGroups") or []:
        for thing in rule.get("resources") or []:
            yield from ((group, thing, name) for name in rule.get("resourceNames") or [""])


def _reaches(rule: Object, path: str, verb: str) -> bool:
    held = rule.get("nonResourceURLs") or []
    return bool({verb, "*"} & {*rule["verbs"]}) and any(
        each == path or (each.endswith("*") and path.startswith(each[:-1])) for each in held
    )


def _refusal(user: User, target: Target, after: Object, missing: list[str]) -> Refused:
    who = f'user "{user.name}" (groups={_words(user.all_groups)})'
    why = f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(missing)
    return forbidden(target.resource.plural, GROUP, name_of(after), why)


def _words(values: list[str] | tuple[str, ...]) -> str:
    """A list of strings in Go's notation."""
    return "[" + " ".join(json.dumps(each) for each in values) + "]"
