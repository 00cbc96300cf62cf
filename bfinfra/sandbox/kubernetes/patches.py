"""The three older kinds of patch: merge (RFC 7386), JSON (RFC 6902), strategic."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.errors import Refused, bad_request
from bfinfra.sandbox.kubernetes.objects import copied
from bfinfra.sandbox.kubernetes.types import ANY, Type

DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def merge_patch(target: object, patch: object) -> Any:
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


def strategic_patch(declared: Type, target: object, patch: object) -> Any:
    """As merge_patch, but lists with a merge key are merged by it; $patch: delete|replace and
    $deleteFromPrimitiveList work.
    """
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


def json_patch(target: object, operations: object) -> Any:
    """RFC 6902, as evanphx/json-patch 4 does it: replace adds what isn't there. Raises Refused (422) if a
    test fails or a path does not exist; its cause contains the reason.
    """
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    done = copied(target)
    for operation in operations:
        done = _operate(done, operation)
    return done


def _operate(target: object, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), operation.get("path", "")
    if kind in ("move", "copy"):
        source = operation.get("from", "")
        value = copied(_value(_parent(target, source, kind), source, kind))
        target = _removed(target, source, kind) if kind == "move" else target
        return _set(target, path, value, kind, new=True)
    if kind == "test":
        holder = _parent(target, path, kind)
        missing = isinstance(holder, dict) and _steps(path)[-1] not in holder
        if (None if missing else _value(holder, path, kind)) != operation.get("value"):
            raise _unprocessable(f"testing path {path} failed")
        return target
    if kind == "remove":
        return _removed(target, path, kind)
    if kind in ("add", "replace"):
        return _set(target, path, operation.get("value"), kind, new=kind == "add")
    raise bad_request(f"Unexpected kind: {kind}")


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _parent(target: Any, path: str, kind: str) -> Any:
    """Return the container of a path's last step."""
    for step in _steps(path)[:-1]:
        try:
            target = target[int(step)] if isinstance(target, list) else target[step]
        except (KeyError, IndexError, ValueError, TypeError):
            target = None
        if not isinstance(target, (dict, list)):
            raise _missing(path, kind)
    return target


def _value(holder: Any, path: str, kind: str) -> Any:
    try:
        return holder[int(_steps(path)[-1])] if isinstance(holder, list) else holder[_steps(path)[-1]]
    except (KeyError, IndexError, ValueError):
        raise _missing(path, kind) from None


def _set(target: object, path: str, value: object, kind: str, *, new: bool) -> Any:
    """`new`: a list gets one more; else an item is replaced. A field is set either way."""
    if not path:
        return value
    holder, last = _parent(target, path, kind), _steps(path)[-1]
    if not isinstance(holder, list):
        holder[last] = value
    elif new and last == "-":
        holder.append(value)
    else:
        position = _index(holder, last, len(holder) + new)
        holder[position : position + (not new)] = [value]
    return target


def _removed(target: object, path: str, kind: str) -> Any:
    holder, last = _parent(target, path, kind), (_steps(path) or [""])[-1]
    if isinstance(holder, list):
        del holder[_index(holder, last, len(holder))]
    elif last in holder:
        del holder[last]
    else:
        raise _unprocessable(
            f"error in remove for path: '{path}': Unable to remove nonexistent key: {last}: missing value"
        )
    return target


def _index(holder: list[Any], step: str, size: int) -> int:
    if not step.lstrip("-").isdigit():
        raise _unprocessable(f"value was not a proper array index: '{step}'")
    position = int(step)
    if not -size <= position < size:
        raise _unprocessable(f"Unable to access invalid index: {position}: invalid index referenced")
    return position % size if holder or position else 0


def _missing(path: str, kind: str) -> Refused:
    return _unprocessable(f'{kind} operation does not apply: doc is missing path: "{path}": missing value')


def _unprocessable(why: str) -> Refused:
    return Refused(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {"causes": [{"message": why}]},
    )
