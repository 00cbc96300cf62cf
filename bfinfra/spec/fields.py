"""One block of a file → one validated model, or problems at its fields."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from bfinfra.model.documentation import documentation
from bfinfra.model.errors import FieldError, Place, Problem
from bfinfra.model.secret import LiteralSecret
from bfinfra.model.sources import Sources
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import ZEROS, Entry, Node
from bfinfra.spec import messages
from bfinfra.spec.merge import Block

M = TypeVar("M")
Spot = tuple[tuple[str, ...], Place, Place]
"""The path in the block; the place of the key; the place to show."""


def validated(model: Any, topic: str, block: Block, sources: Sources, problems: list[Problem]) -> Any | None:
    """The block as `model`; None with the reasons in `problems`. `topic`: what the problems call the block.
    An empty block is {}.
    """
    data = block.data()
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    try:
        if is_model:
            found = model.model_validate({} if data is None else data, context={"sources": sources})
            if any(source.zeros for source in block.sources):
                problems += (
                    replace(problem, what=f"{topic}: {problem.what}")
                    for problem in _octals(block.entry.node, found, ())
                )
            return found
        return TypeAdapter(model).validate_python(data, context={"sources": sources})
    except ValidationError as error:
        kind = topic.partition("/")[0] if "/" in topic else ""
        wrong = _problems(error.errors(include_url=False), block.entry, model, kind)
        problems += (replace(problem, what=f"{topic}: {problem.what}") for problem in wrong)
        return None


def _octals(node: Node, value: object, path: tuple[str, ...]) -> Iterator[Problem]:
    """Problems for numbers with a leading zero: YAML 1.1 reads 010 as 8, YAML 1.2 as 10."""
    if isinstance(node.value, dict):
        for key, entry in node.value.items():
            yield from _octals(
                entry.node,
                value.get(key) if isinstance(value, Mapping) else getattr(value, key, None),
                (*path, key),
            )
    elif isinstance(node.value, list):
        for number, (each, inner) in enumerate(
            zip(node.value, value if isinstance(value, list | tuple) else (), strict=False)
        ):
            yield from _octals(each, inner, (*path, str(number)))
    elif node.plainly and type(value) in (int, float) and ZEROS.fullmatch(node.value.lstrip("+-")):
        yield Problem(
            f"{'.'.join(path)}: expected a number without leading zeros",
            node.at,
            f"found {node.value}, which YAML 1.1 reads as octal, and YAML 1.2 does not",
            f"write {value} if you mean that",
        )


def _problems(errors: Sequence[object], entry: Entry, model: object, kind: str) -> Iterator[Problem]:
    """One problem for each field: the errors of its alternatives are joined. `kind`: of the resource, ""
    where the block is none.
    """
    located = [(_blamed(entry, error), error) for error in errors]
    for (path, name, at), same in itertools.groupby(located, key=lambda pair: _topic(*pair)):
        problem = _problem(path, name, at, [error for _, error in same], model)
        field = (*path, name)[0]
        explain = f"bfinfra explain {kind}.{field} describes it" if kind and field else ""
        yield replace(problem, next=problem.next or explain)


def _blamed(entry: Entry, error: Any) -> Spot:
    """The field that an error blames. If it isn't written, the place is that of the block around it."""
    loc, meant = error["loc"], _meant(error)
    path, key, at = _spot(entry, (*loc, *meant))
    return (*_spot(entry, loc)[0], *map(str, meant)) if meant else path, key, at


def _meant(error: Any) -> tuple[str | int, ...]:
    """The path of the field that a check of several fields blames, below the checked model."""
    inner = error.get("ctx", {}).get("error")
    return inner.path if isinstance(inner, FieldError) else ()


def _topic(spot: Spot, error: Any) -> tuple[tuple[str, ...], str, Place]:
    path, key, at = spot
    name = str(error["loc"][-1]) if error["type"] in ("missing", "extra_forbidden") else ""
    return path, name, key if error["type"] == "extra_forbidden" or error["loc"][-1:] == ("[key]",) else at


def _problem(path: tuple[str, ...], name: str, at: Place, errors: list[Any], model: object) -> Problem:
    first, inside = errors[0], ".".join(path)
    if first["type"] == "missing":
        return Problem(f"{'.'.join((*path, name))} is missing", at)
    if first["type"] == "extra_forbidden":
        return Problem(f"there is no field {inside}", at, next=_field_near(path, model))
    head = f"{inside}: " if inside else ""
    if any(isinstance(e.get("ctx", {}).get("error"), LiteralSecret) for e in errors):
        return Problem(
            f"{head}write a reference, never the secret itself",
            at._replace(text=""),
            next=messages.sentence(first),
        )
    wanted = list(dict.fromkeys(w for w in map(messages.expected, errors) if w))
    if not wanted or first["type"] == "value_error":
        return Problem(
            head
            + next(
                (messages.sentence(e) for e in errors if e["type"] == "value_error"), messages.sentence(first)
            ),
            at,
            next=next((e["ctx"]["error"].next for e in errors if _meant(e)), ""),
        )
    advice = (
        _documentation(path, model) if first["type"] == "string_pattern_mismatch" else messages.choice(errors)
    )
    return Problem(f"{head}expected {' or '.join(wanted)}", at, messages.found(first), advice)


def _spot(entry: Entry, loc: Iterable[object]) -> Spot:
    """The place that an error's location leads to. Parts of the location that name an alternative of a type
    are skipped.
    """
    path: list[str] = []
    key, at, node = entry.at, entry.place, entry.node
    for part in loc:
        if isinstance(node.value, dict) and str(part) in node.value:
            key, at, node = (found := node.value[str(part)]).at, found.place, found.node
        elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            key = at = node.at
        else:
            continue
        path.append(str(part))
    return tuple(path), key, at


def _field_near(path: tuple[str, ...], model: object) -> str:
    """Advice with the most similar field of the same level, or the field of that name one level below."""
    *above, wrong = path
    fields = _fields(_under(model, above))
    near = nearest(wrong, fields)
    below = [f"{name}.{wrong}" for name, hint in fields.items() if wrong in _fields(_models(hint))]
    return f"did you mean {below[0]}?" if below and not near.startswith("did you mean") else near


def _documentation(path: tuple[str, ...], model: object) -> str:
    """Return the description of a field; of the nearest field above where the place is an item or a key."""
    for end in range(len(path), 0, -1):
        for owner in _under(model, path[: end - 1]):
            if path[end - 1] in owner.model_fields:
                return documentation(owner).get(path[end - 1], "")
    return ""


def _fields(models: Iterable[Any]) -> dict[str, Any]:
    return {name: field.annotation for model in models for name, field in model.model_fields.items()}


def _under(model: object, path: Iterable[str]) -> list[Any]:
    """The models that may be at a path."""
    here = _models(model)
    for part in path:
        inner = [model.model_fields[part].annotation for model in here if part in model.model_fields]
        # else a list's index, or a mapping's key
        here = [found for hint in inner for found in _models(hint)] if inner else here
    return here


def _models(hint: object) -> list[Any]:
    """Every model in a type hint: `dict[str, Pool] | None` → [Pool]."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    return [model for arg in typing.get_args(hint) for model in _models(arg)]
