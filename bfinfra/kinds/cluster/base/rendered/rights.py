"""The rights on the types of a rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bfinfra.backends.kubernetes.resources import KNOWN
from bfinfra.kinds.cluster.base.rendered.objects import DEFINITION, definitions
from bfinfra.kinds.cluster.base.rendered.rendering import Rendering
from bfinfra.model.rights import Right, Use, may

ROLES = {"Role", "ClusterRole"}
RBAC = "rbac.authorization.k8s.io"
PLACE = "objects"


def of_types(rendering: Rendering) -> Iterator[tuple[Use, Right]]:
    """Yield the rights of each use. RBAC can't limit creation by name."""
    plurals = {of: plural for of, _, plural in definitions(rendering.manifests.values())}
    named = [
        f"{plurals.get((group, kind)) or plural(api, kind)}{f'.{group}' if group else ''}"
        for (group, kind), api in rendering.apis.items()
    ]
    resources = " ".join(named)
    yield Use.PLAN, may("get list", resources, PLACE)
    yield Use.APPLY, may("get list create patch", resources, PLACE)
    if rendering.hooks:
        yield Use.APPLY, may("delete", resources, PLACE)
    yield Use.DESTROY, may("get list delete", resources, PLACE)
    if rendering.removal:
        yield Use.DESTROY, may("create", resources, PLACE)
    for resource in (f"{each.lower()}s.{RBAC}" for each in ROLES if (RBAC, each) in rendering.apis):
        yield Use.APPLY, may("escalate bind", resource, PLACE)
    if rendering.unknown:
        for use in Use:
            yield use, may("list", f"customresourcedefinitions.{DEFINITION[0]}", PLACE)
    if plurals:
        theirs = " ".join(f"{each}.{group}" for (group, _), each in plurals.items())
        for use in (Use.APPLY, Use.DESTROY):
            yield use, may("list", theirs, PLACE)


def plural(api: str, kind: str) -> str:
    """The name of a type in paths; that of a type that is not known here follows English."""
    if found := KNOWN.get((api, kind)):
        return found.plural
    word = kind.lower()
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|ch|sh)$", word) else f"{word}s"
