"""The three older kinds of patch: merge (RFC 7386), JSON (RFC 6902), strategic."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.errors import Refused, bad_request
from bfinfra.sandbox.kubernetes.objects import copied
from bfinfra.sandbox.kubernetes.types import ANY, Type

DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copied(patch)
    done = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            done.pop(name, None)
        else:
            done[name] = merge_patch(done.get(name), value)
    return done


def strategic_patch(declared: Type, target: Any, patch: Any) -> Any:
    """As merge_patch, but lists with a merge key are merged by it; $patch: delete|replace and $deleteFromPrimitiveList work."""
    if not isinstance(patch, dict):
        return copied(patch)
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    done = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            done[field] = [each for each in done.get(field, []) if each not in value]
        elif name.startswith(DIRECTIVES):
            continue
        elif value is None:
            done.pop(name, None)
        else:
            done[name] = _strategic(declared.field(name) or ANY, done.get(name), value)
    if "$retainKeys" in patch:
        done = {name: value for name, value in done.items() if name in patch["$retainKeys"]}
    return done


def _strategic(below: Type, live: Any, value: Any) -> Any:
    if not isinstance(value, list):
        return strategic_patch(below, live, value)
    if not below.merges:
        return copied(value)
    if not below.merge_key:
        return [*(live or []), *(each for each in value if each not in (live or []))]
    return _merged_items(below, live or [], value)


def _merged_items(declared: Type, live: list[Any], patch: list[Any]) -> list[Any]:
    key = declared.merge_key
    if any(each.get("$patch") == "replace" for each in patch):
        return [each for each in patch if "$patch" not in each]
    done = {each.get(key): each for each in live}
    for each in patch:
        if key not in each:
            raise bad_request(f"map: {each} does not contain declared merge key: {key}")
        if each.get("$patch") == "delete":
            done.pop(each[key], None)
        else:
            done[each[key]] = strategic_patch(declared.item, done.get(each[key]), each)
    return list(done.values())


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902. Refused (422) where a test fails or a path isn't there."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    done = copied(target)
    for operation in operations:
        done = _operate(done, operation)
    return done


def _operate(target: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), _pointer(operation.get("path", ""))
    if kind in ("move", "copy"):
        value = copied(_at(target, _pointer(operation["from"])))
        target = _remove(target, _pointer(operation["from"])) if kind == "move" else target
        return _add(target, path, value)
    if kind == "test":
        if _at(target, path) != operation.get("value"):
            raise _unprocessable(f"testing value {operation['path']} failed")
        return target
    if kind == "remove":
        return _remove(target, path)
    if kind == "replace" and path:
        _at(target, path)
        parent = _at(target, path[:-1])
        parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = operation.get("value")
        return target
    if kind in ("add", "replace"):
        return _add(target, path, operation.get("value"))
    raise bad_request(f"Unexpected kind: {kind}")


def _pointer(text: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _at(target: Any, path: list[str]) -> Any:
    for step in path:
        try:
            target = target[int(step)] if isinstance(target, list) else target[step]
        except (KeyError, IndexError, ValueError, TypeError) as missing:
            raise _unprocessable(f"the path /{'/'.join(path)} does not exist: {missing}") from missing
    return target


def _add(target: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(target, path[:-1])
    if isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else int(path[-1]), value)
    else:
        parent[path[-1]] = value
    return target


def _remove(target: Any, path: list[str]) -> Any:
    _at(target, path)
    parent = _at(target, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return target


def _unprocessable(why: str) -> Refused:
    return Refused(422, "Invalid", "the server rejected our request due to an error in our request", {"causes": [{"message": why}]})
