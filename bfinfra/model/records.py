"""The standard library's dataclasses, whose methods are made when a class's first record is. Most classes
that a command imports make none.

`dataclasses.dataclass` compiles up to six functions for each class at import: with it a drift of 300 servers
takes 1.10 times the processor time (1.09 times the seconds, in turns). Type checkers see the standard
decorator; `fields`, `replace` and `asdict` of the standard library accept these classes.
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type[Any] | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Any:
        """As the standard decorator, with these options only; `slots` of a class without bases."""

        def make(cls: type[Any]) -> type[Any]:
            bases = [base for base in reversed(cls.__mro__[1:]) if dataclasses.is_dataclass(base)]
            made: Any = (
                _derived(cls, bases, kw_only=kw_only)
                if bases
                else dataclasses.dataclass(
                    cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
                )
            )
            made.__dataclass_params__.frozen = frozen
            for name, method in _methods(made, frozen=frozen, slots=slots).items():
                if vars(made).get(name) is None:  # else the class has its own
                    setattr(made, name, method)
            return made

        return make if cls is None else make(cls)


def _derived(cls: Any, bases: list[Any], *, kw_only: bool) -> Any:
    """The class with its fields and those of its bases. It is made without bases, as next to frozen bases the
    standard library compiles methods at once.
    """
    own = inspect.get_annotations(cls)
    given = {name: vars(cls)[name] for name in own if name in vars(cls)}
    bare = type(
        cls.__name__,
        (),
        {"__module__": cls.__module__, "__doc__": "its own fields", "__annotations__": own, **given},
    )
    alone: Any = dataclasses.dataclass(bare, init=False, repr=False, eq=False, kw_only=kw_only)
    for name in given:
        if name in vars(alone):
            setattr(cls, name, vars(alone)[name])
        else:
            delattr(cls, name)
    fields = {name: field for each in (*bases, alone) for name, field in each.__dataclass_fields__.items()}
    positional = tuple(name for name, field in fields.items() if not field.kw_only)
    for name, found in {
        "__dataclass_fields__": fields,
        "__dataclass_params__": alone.__dataclass_params__,
        "__match_args__": positional,
    }.items():
        setattr(cls, name, found)
    return cls


def _methods(cls: Any, *, frozen: bool, slots: bool) -> dict[str, Any]:
    shown = [field.name for field in dataclasses.fields(cls) if field.repr]

    def later(name: str, write: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        def first(self: object, *given: object, **named: object) -> Any:
            if vars(cls)[name] is first:
                setattr(cls, name, write())
            return vars(cls)[name](self, *given, **named)

        return first

    @reprlib.recursive_repr()
    def text(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    found: dict[str, Any] = {
        "__init__": later("__init__", lambda: _init(cls, frozen=frozen)),
        "__repr__": text,
        "__eq__": later("__eq__", lambda: _eq(cls)),
        "__hash__": later("__hash__", lambda: _hash(cls)) if frozen else None,
    }
    if frozen:
        found |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if frozen and slots:
        found |= {"__getstate__": _state, "__setstate__": _restore}
    return found


def _init(cls: Any, *, frozen: bool) -> Callable[..., Any]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_none": dataclasses.MISSING}
    taken: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for field in dataclasses.fields(cls):
        name = value = default = field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            default, value = f"{name}=_none", f"_make_{name}() if {name} is _none else {name}"
        elif field.default is not dataclasses.MISSING:
            known[f"_else_{name}"] = field.default
            default = f"{name}=_else_{name}"
        taken[bool(field.kw_only)].append(default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self", *taken[False], *(["*", *taken[True]] if taken[True] else [])]
    return _written(cls, f"__init__({', '.join(parameters)})", lines or ["pass"], known)


def _eq(cls: Any) -> Callable[..., Any]:
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    same = f"{_tuple('self', compared)} == {_tuple('other', compared)}"
    return _written(
        cls,
        "__eq__(self, other)",
        [f"return {same} if other.__class__ is self.__class__ else NotImplemented"],
        {},
    )


def _hash(cls: Any) -> Callable[..., Any]:
    hashed = [
        field.name
        for field in dataclasses.fields(cls)
        if (field.compare if field.hash is None else field.hash)
    ]
    return _written(cls, "__hash__(self)", [f"return hash({_tuple('self', hashed)})"], {})


def _written(cls: Any, head: str, lines: list[str], known: dict[str, Any]) -> Callable[..., Any]:
    """The source of a method, as the standard library writes it."""
    exec("\n".join([f"def {head}:", *(f" {line}" for line in lines)]), known)  # noqa: S102 - of names of fields alone
    name = head.partition("(")[0]
    made: Callable[..., Any] = known[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name},' for name in names)})"


def _refuse(_: object, name: str, _value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
