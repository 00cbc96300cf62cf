"""Reads the docstrings of classes, functions and fields of models.

A model's source is read when its documentation is asked for, not whenever a site is loaded.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping

from pydantic import BaseModel


def summary(thing: object) -> str:
    """The first paragraph of a docstring, on one line; "" if there is none."""
    return " ".join((thing.__doc__ or "").strip().partition("\n\n")[0].split())


@functools.cache
def documentation(model: type[BaseModel]) -> Mapping[str, str]:
    """Field → its docstring, with the fields of base classes; {} if the source is missing."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found.update(_under(base))
    return {name: text for name, text in found.items() if name in model.model_fields}


def _under(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return
    (whole,) = ast.parse(source).body
    assert isinstance(whole, ast.ClassDef)
    for field, text in zip(whole.body, whole.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                yield name, " ".join(doc.split())
