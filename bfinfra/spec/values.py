"""Values of a site: declared under `values:`, given by the caller, used as `{value: NAME}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.sources import Sources
from bfinfra.model.suggest import nearest
from bfinfra.model.variant import Given
from bfinfra.model.yaml import HINT, ZEROS, Entry, Node, SourceText, Unreadable, compose
from bfinfra.spec import messages
from bfinfra.spec.fields import validated
from bfinfra.spec.files import SiteDocument
from bfinfra.spec.merge import VALUES, Block, Blocks, names_expected, noun

VALUE = "value"
NAME, NAME_RULE = r"[A-Za-z][A-Za-z0-9_-]*", "letters, digits, _ and -, a letter first"
Type = Literal["string", "integer", "number", "boolean", "list", "map"]
SCALARS: Mapping[str, tuple[type, str]] = {
    "integer": (int, messages.WHOLE),
    "number": (float, messages.NUMBER),
    "boolean": (bool, messages.SWITCH),
}
SHAPES: Mapping[str, tuple[type, str]] = {
    "string": (str, messages.TEXT),
    "list": (list, messages.ITEMS),
    "map": (dict, messages.FIELDS),
}
assert {*SCALARS, *SHAPES} == {*get_args(Type)}


class Declaration(BaseModel):
    """Declares a value that the site uses as `{value: NAME}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    type: Type = "string"
    """Its type: string, integer, number, boolean, list or map."""
    default: Any = None
    """Its value if the caller gives none. Without a default the caller must give one."""
    description: str = ""
    """What it is for."""


@dataclass(frozen=True, slots=True)
class Filled:
    """`broken`: the settings and resources whose value is missing or wrong; problems say so. `unused`: a
    warning for each value that nothing uses.
    """

    blocks: Blocks
    broken: frozenset[Key | str] = frozenset()
    unused: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Value:
    """A declared value. `node`: its value, None if nobody gives one; `wrong`: a problem about it exists."""

    entry: Entry
    type: Type
    node: Node | None
    wrong: bool = False
    used: bool = False


def fill(
    blocks: Blocks, value_files: Sequence[SiteDocument], given: Sequence[Given], problems: list[Problem]
) -> Filled:
    """The blocks without the declarations, and with the values filled in."""
    block = blocks.settings.get(VALUES)
    named = any(
        source.names_values for each in (blocks.settings, blocks.resources) for source in _sources(each)
    )
    if not (block or value_files or given or named):
        return Filled(blocks)
    values = dict(_declared(block, problems)) if block else {}
    for name, node, at in (*_in_files(value_files, problems), *_outright(given, values, problems)):
        if value := values.get(name):
            value.node = node
        else:
            problems.append(_undeclared(name, at, values))
    for name, value in values.items():
        if value.node is not None and (problem := _misfit(name, value)):
            value.wrong = True
            problems.append(problem)
    filler = _Filler(values, problems)
    settings = {name: each for name, each in blocks.settings.items() if name != VALUES}
    filled = Blocks(filler.blocks(settings), filler.blocks(blocks.resources))
    unused = tuple(_unused(name, value.entry) for name, value in values.items() if not value.used)
    return Filled(filled, frozenset(filler.broken), unused)


def _sources(blocks: Mapping[Any, Block]) -> set[SourceText]:
    return {source for block in blocks.values() for source in block.sources}


def _declared(block: Block, problems: list[Problem]) -> Iterator[tuple[str, _Value]]:
    node = block.entry.node
    if not isinstance(node.value, dict):
        if node.value is not None:
            advice = f"write {VALUES}: {{a-name: {{type: string}}}}"
            problems.append(names_expected(VALUES, block.entry, advice, each="type"))
        return
    for name, entry in node.value.items():
        if not re.fullmatch(NAME, name):
            problems.append(
                Problem(f"{name} can't be the name of a value", entry.at, f"allowed: {NAME_RULE}")
            )
        read = validated(Declaration, f"{VALUES}.{name}", replace(block, entry=entry), Sources(), problems)
        default = entry.node.value.get("default") if isinstance(entry.node.value, dict) else None
        given = default.node if default and default.node.value is not None else None
        yield name, _Value(entry, read.type if read else "string", given, wrong=read is None)


def _in_files(
    documents: Sequence[SiteDocument], problems: list[Problem]
) -> Iterator[tuple[str, Node, Place]]:
    for document in documents:
        root = document.root
        if root is None or root.value is None:
            continue
        if not isinstance(root.value, dict):
            problems.append(
                Problem(
                    "expected names, each with its value",
                    root.at,
                    f"found {noun(root.value)}",
                    "write a-name: its value",
                )
            )
            continue
        yield from ((name, entry.node, entry.at) for name, entry in root.value.items())


def _outright(
    given: Sequence[Given], values: Mapping[str, _Value], problems: list[Problem]
) -> Iterator[tuple[str, Node, Place]]:
    """The values given without a file. A list or a map may be given as YAML."""
    for each in given:
        source = _Origin(each.origin)
        value = values.get(each.name)
        node = _node(each.data, source)
        if value and value.type in SCALARS:
            node = node._replace(plainly=True)
        if value and value.type in ("list", "map") and isinstance(each.data, str):
            try:
                root, found = compose(Path(each.origin), each.data)
            except Unreadable as error:
                root, found = None, [error.problem]
            problems += found
            value.wrong = value.wrong or bool(found)
            node = root or node
        yield each.name, node, source.place(_START)


class _Origin(SourceText):
    """The origin of a value that no file contains. Its places have no line."""

    def __init__(self, message: str) -> None:
        super().__init__(Path(message), "")

    def place(self, mark: object) -> Place:
        """The same place for every part of it."""
        return Place(self.file, 0, 0)


class _Nowhere:
    line = column = 0


_START = _Nowhere()


def _node(data: object, source: SourceText) -> Node:
    """Plain data as a node. Scalars are text until a field reads them."""
    if isinstance(data, Mapping):
        fields = {str(name): Entry(_START, _node(each, source)) for name, each in data.items()}
        return Node(source, _START, fields)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return Node(source, _START, [_node(each, source) for each in data])
    text = str(data).lower() if isinstance(data, bool) else data if data is None else str(data)
    return Node(source, _START, text, plainly=not isinstance(data, str))


def _misfit(name: str, value: _Value) -> Problem | None:
    """The problem of a value that does not have its type, or None."""
    node, declared = value.node, value.entry.at
    if node is None or value.wrong:
        return None
    if shape := SHAPES.get(value.type):
        wanted, fits = shape[1], isinstance(node.value, shape[0])
    else:
        scalar, wanted = SCALARS[value.type]
        fits = isinstance(node.value, str) and _reads(scalar, node.value)
    if fits and value.type in ("integer", "number") and ZEROS.fullmatch(node.value):
        wanted, fits = f"{wanted} without leading zeros", False
    if fits:
        return None
    secretly = HINT.search(name.casefold())
    here = "" if secretly else messages.found({"input": node.plain()})
    place = node.at._replace(text="") if secretly else node.at
    return Problem(f"the value {name}: expected {wanted}", place, here, f"it is declared at {declared}")


def _reads(scalar: type, text: str) -> bool:
    try:
        TypeAdapter(scalar).validate_python(text)
    except ValidationError:
        return False
    return True


def _undeclared(name: str, at: Place, values: Mapping[str, _Value]) -> Problem:
    near = nearest(name, values)
    return Problem(
        f"the site has no value {name}",
        at._replace(text="") if HINT.search(name.casefold()) else at,
        "" if values else f"it declares none under {VALUES}:",
        near or f"add {VALUES}: {{{name}: {{type: string}}}} to the site",
    )


def _unused(name: str, entry: Entry) -> Problem:
    return Problem(
        f"the value {name} is not used",
        entry.at,
        f"nothing in the site uses {{{VALUE}: {name}}}",
        "use it, or remove the declaration",
    )


@dataclass(slots=True)
class _Filler:
    """Replaces `{value: NAME}` in blocks by the values."""

    values: Mapping[str, _Value]
    problems: list[Problem]
    broken: set[Key | str] = field(default_factory=set)

    def blocks(self, found: Mapping[Any, Block]) -> dict[Any, Block]:
        """The same blocks, filled."""
        return {name: self._block(name, block) for name, block in found.items()}

    def _block(self, topic: Key | str, block: Block) -> Block:
        if not any(source.names_values for source in block.sources):
            return block
        sources = dict.fromkeys(block.sources)
        node = self._node(block.entry.node, topic, "", sources)
        entry = block.entry if node is block.entry.node else _with(block.entry, node)
        return replace(block, entry=entry, sources=tuple(sources))

    def _node(self, node: Node, topic: Key | str, path: str, sources: dict[SourceText, None]) -> Node:
        if isinstance(node.value, list):
            items = [
                self._node(each, topic, _below(path, str(number)), sources)
                for number, each in enumerate(node.value)
            ]
            same = all(one is other for one, other in zip(items, node.value, strict=True))
            return node if same else node._replace(value=items)
        if not isinstance(node.value, dict):
            return node
        if node.value.keys() == {VALUE} and isinstance((named := node.value[VALUE].node).value, str):
            return self._named(named, topic, path, sources) or node
        fields = {
            name: _with(entry, self._node(entry.node, topic, _below(path, name), sources))
            for name, entry in node.value.items()
        }
        same = all(entry.node is node.value[name].node for name, entry in fields.items())
        return node if same else node._replace(value=fields)

    def _named(
        self, named: Node, topic: Key | str, path: str, sources: dict[SourceText, None]
    ) -> Node | None:
        """The value's node; None, with a problem, if it is missing or wrong."""
        name, value = named.value, self.values.get(named.value)
        message = f"{topic}: {path}" if path else str(topic)
        if value is None:
            near = nearest(name, self.values)
            advice = near or f"declare it: {VALUES}: {{{name}: {{type: string}}}}"
            problem = Problem(f"{message} uses the value {name}, which the site does not declare", named.at)
            self.problems.append(replace(problem, next=advice))
        elif value.wrong:
            value.used = True
        elif value.node is None:
            if not value.used:
                self.problems.append(_missing(name, message, value.entry))
            value.used = True
        else:
            value.used = True
            sources[value.node.source] = None
            return value.node
        self.broken.add(topic)
        return None


def _missing(name: str, message: str, entry: Entry) -> Problem:
    return Problem(
        f"the value {name} is not given",
        entry.at,
        f"it has no default, and {message} uses it",
        f"give it: --set {name}=…, or a line {name}: … in a file for --values",
    )


def _with(entry: Entry, node: Node) -> Entry:
    """The entry with another node. A key's place is in the same source as its node."""
    if node is entry.node:
        return entry
    return Entry(entry.mark if node.source is entry.node.source else node.mark, node)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
