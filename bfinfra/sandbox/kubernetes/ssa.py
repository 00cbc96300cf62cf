"""Server-side apply: merge by the declared list keys, conflicts by owners, removal of what the manager no
longer applies.
"""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.errors import Refused, internal
from bfinfra.sandbox.kubernetes.fields import problems
from bfinfra.sandbox.kubernetes.fieldset import (
    MISSING,
    Path,
    Paths,
    below_of,
    children,
    element,
    owned,
    readable,
    tracked,
)
from bfinfra.sandbox.kubernetes.managed import Manager, Owners
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of
from bfinfra.sandbox.kubernetes.types import Type


def check(declared: Type, sent: Object, group: str, version: str) -> None:
    """Refuse what can't be typed: a real server answers 500 for it."""
    for problem in problems(declared, sent):
        where = f"{namespace_of(sent)}/{name_of(sent)}; {group}/{version}, Kind={sent['kind']}"
        raise internal(f"failed to create typed patch object ({where}): {problem.typed}")


def apply(declared: Type, live: Object, sent: Object) -> tuple[Object, Paths]:
    """The live object with the applied fields merged in, and the paths of those fields."""
    return merge(declared, live, sent), tracked(owned(declared, sent))


def without_disowned(  # noqa: PLR0913 - one decision's whole input
    declared: Type, merged: Object, last: Paths, sent: Paths, owners: Owners, me: Manager
) -> Object:
    """The object without the fields that this manager alone owned and now omits."""
    others = {path for each, (paths, _) in owners.items() if each != me for path in paths}
    kept = _with_parents(sent) | _with_parents(frozenset(others))
    gone = {path for path in _with_parents(last) if path not in kept}
    return dict(_pruned(declared, merged, gone, ())) if gone else merged


def new_owners(  # noqa: PLR0913 - one decision's whole input
    owners: Owners, me: Manager, sent: Paths, moved: tuple[Paths, Paths], when: str, *, force: bool
) -> Owners:
    """The owners after the apply. Raises Refused (409) if others own what it changes, unless forced."""
    changed, removed = moved
    clashes = {each: paths & changed for each, (paths, _) in owners.items() if each != me and paths & changed}
    if clashes and not force:
        raise refused(clashes)
    done = {
        each: (paths - removed - (changed if force else frozenset()), at)
        for each, (paths, at) in owners.items()
        if each != me
    }
    before = owners.get(me)
    return {
        **done,
        me: (sent, before[1] if before and before[0] == sent and not changed and not removed else when),
    }


def refused(clashes: dict[Manager, Paths]) -> Refused:
    """The 409 that names managers and fields."""
    pairs = [
        (manager, readable(path))
        for manager, paths in sorted(clashes.items(), key=lambda item: item[0].described)
        for path in sorted(paths)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager.described}", "field": path}
        for manager, path in pairs
    ]
    if len(pairs) == 1:
        text = f"1 conflict: conflict with {pairs[0][0].described}: {pairs[0][1]}"
    else:
        blocks = [
            "\n- ".join(
                [f"conflicts with {manager.described}:", *(path for each, path in pairs if each == manager)]
            )
            for manager in dict.fromkeys(each for each, _ in pairs)
        ]
        text = f"{len(pairs)} conflicts: " + "\n".join(blocks)
    return Refused(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def merge(declared: Type, live: object, sent: object) -> Any:
    """Two values of one type; the applied one wins, lists that are maps or sets are united in the applied
    order.
    """
    if sent is MISSING or live is MISSING or declared.atomic or declared.form == "scalar":
        return live if sent is MISSING else sent
    if isinstance(live, dict) and isinstance(sent, dict):
        done = dict(live)
        for name, child in sent.items():
            below = declared.field(name)
            done[name] = merge(below, live.get(name, MISSING), child) if below else child
        return done
    return _merged_list(declared, live, sent) if isinstance(live, list) and isinstance(sent, list) else sent


def _merged_list(declared: Type, live: list[Any], sent: list[Any]) -> list[Any]:
    ours = {element(declared, item): item for item in sent}
    theirs = {element(declared, item): item for item in live}
    left, right, done = list(theirs), list(ours), {}
    while left or right:
        if left and left[0] not in ours:
            key = left.pop(0)
            done[key] = theirs[key]
        elif left and left[0] in done:
            left.pop(0)
        elif right:
            key = right.pop(0)
            done[key] = merge(declared.item, theirs.get(key, MISSING), ours[key])
    return list(done.values())


def _with_parents(paths: Paths) -> set[Path]:
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def _pruned(declared: Type, value: object, gone: set[Path], path: Path) -> Any:
    inner = children(declared, value)
    if inner is None:
        return value
    left = {}
    for name, child in inner.items():
        below = below_of(declared, name)
        if (*path, name) not in gone:
            left[name] = _pruned(below, child, gone, (*path, name)) if below else child
    return (
        list(left.values()) if isinstance(value, list) else {name[2:]: child for name, child in left.items()}
    )
