"""Writes YAML of a site: blocks of resources with comments, and a block inserted into an existing file, whose
comments and layout are kept.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.scalarint import HexInt

from bfinfra.formats.visible import visible
from bfinfra.formats.yaml import Readable, comment
from bfinfra.model import yaml
from bfinfra.model.description import Path
from bfinfra.model.errors import BfinfraError, Problem

Fields = Mapping[str, object]
FillIn = Mapping[Path, str]
WIDTH = 90
"""Columns that a mapping or list on one line may take."""
FILL_IN = "fill in: "
HEX = re.compile(r"0x[0-9a-f]{4}")
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as ruamel.yaml counts them."""


def block(kind: str, resources: Mapping[str, tuple[Fields, FillIn]]) -> str:
    """The text of some resources of a kind: name → its fields, and which of them the user must fill in."""
    made = CommentedMap()
    for name, (fields, fill_in) in resources.items():
        made[name] = _value(fields, (), fill_in)
        if left := "\n".join(map(visible, _missing(fields, fill_in))):
            made.yaml_set_comment_before_after_key(name, before=left, indent=2)
    return _dumped(CommentedMap({kind: made}))


def entry(name: str, value: object) -> str:
    """The text of a setting of the site."""
    return _dumped(CommentedMap({name: _value(value, (), {})}))


def inserted(text: str, kind: str, name: str, fields: Fields, fill_in: FillIn) -> str:
    """A file's text with one more resource at the end of its kind's block, or at the end of the file. Raises
    BfinfraError, also if it would be read as anything else.
    """
    before = _read(text)
    more = {**(before.get(kind) or {}), name: fields}
    return same(_inserted(text, kind, name, fields, fill_in), {**before, kind: more})


def same(text: str, meant: Mapping[str, object]) -> str:
    """The text, if the site's reader finds in it what was meant, and nothing else. Raises BfinfraError."""
    try:
        found = _read(text)
    except BfinfraError as error:
        raise _misread("the site", str(error)) from None
    wanted = {name: _as_read(value) for name, value in meant.items()}
    for name in {**wanted, **found}:
        if found.get(name, text) != wanted.get(name, text):
            raise _misread(name)
    return text


def _misread(what: str, why: str = "") -> BfinfraError:
    return BfinfraError(
        Problem(
            f"{visible(what)} can't be written so that it is read again as it is",
            why=why or "something in it has a meaning in YAML that bfinfra's writer missed",
            next="rename the object on the server, and report its name",
        )
    )


def _read(text: str) -> dict[str, Any]:
    """The values of a site's text. Raises BfinfraError."""
    try:
        root, problems = yaml.compose(File("site.yaml"), text)
    except yaml.Unreadable as error:
        raise BfinfraError(error.problem) from None
    if problems:
        raise BfinfraError(*problems)
    found = {} if root is None else root.plain()
    if not isinstance(found, dict):
        raise BfinfraError(Problem("the file contains no mapping", next="name the site's own file"))
    return found


def _as_read(value: object) -> object:
    """A value as the site's reader finds it: text, None, lists, dicts."""
    if isinstance(value, Mapping):
        return {str(name): _as_read(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_read(each) for each in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)


def _inserted(text: str, kind: str, name: str, fields: Fields, fill_in: FillIn) -> str:
    lines = LINE.findall(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    document = _yaml().load(text)
    if not isinstance(document, CommentedMap):
        raise BfinfraError(Problem("the file contains no mapping", next="name the site's own file"))
    new = block(kind, {name: (fields, fill_in)})
    if kind not in document:
        return "".join([*lines, new])
    there = document[kind]
    if there is None:
        at = document.lc.key(kind)[0] + 1
        return "".join([*lines[:at], *_body(new, 2), *lines[at:]])
    if not isinstance(there, CommentedMap) or not there or there.fa.flow_style():
        raise BfinfraError(
            Problem(
                f"{kind} is written on one line",
                why="a resource can't be added to it without a new layout",
                next="write each of its resources on a line of its own",
            )
        )
    at = _end(lines, document.lc.key(kind)[0], there.lc.col)
    return "".join([*lines[:at], *_body(new, there.lc.col), *lines[at:]])


def _body(text: str, indent: int) -> list[str]:
    """The lines of a block without its first, indented by `indent`."""
    return [line.replace("  ", " " * indent, 1) for line in LINE.findall(text)[1:]]


def _end(lines: Sequence[str], first: int, indent: int) -> int:
    """The index of the line after the block that begins at line `first`. Blank lines and less indented
    comments belong to what follows.
    """
    last = first + 1
    for number in range(first + 1, len(lines)):
        text = lines[number].rstrip()
        if not text:
            continue
        if len(text) - len(text.lstrip()) < indent:
            break
        last = number + 1
    return last


def _value(value: object, path: Path, fill_in: Mapping[Path, str]) -> object:
    """A value as it is written: short mappings and lists on one line, PCI ids in hexadecimal."""
    if isinstance(value, str) and HEX.fullmatch(value):
        return HexInt(int(value, 16), width=4)
    if not isinstance(value, Mapping | list | tuple):
        return value
    made: CommentedMap | CommentedSeq
    if isinstance(value, Mapping):
        made = CommentedMap({name: _value(each, (*path, name), fill_in) for name, each in value.items()})
    else:
        made = CommentedSeq(_value(each, (*path, place), fill_in) for place, each in enumerate(value))
    noted = any(where[: len(path)] == path for where in fill_in)
    if path and not noted and len(str(value)) < WIDTH:
        made.fa.set_flow_style()
    for where, what in fill_in.items():
        if where[:-1] == path and _has(value, where[-1]):
            made.yaml_add_eol_comment(comment(f"{FILL_IN}{what}"), where[-1])
    return made


def _has(value: object, step: str | int) -> bool:
    return step in value if isinstance(value, Mapping) else False


def _missing(fields: Mapping[str, object], fill_in: Mapping[Path, str]) -> Iterator[str]:
    """A comment for each field to fill in that has no value."""
    for path, what in fill_in.items():
        at: object = fields
        for step in path:
            at = at.get(str(step)) if isinstance(at, Mapping) else None
        if at is None:
            yield f"{FILL_IN}{'.'.join(map(str, path))}, {what}"


class _Emitter(Readable, RoundTripEmitter):
    """ruamel.yaml's emitter, whose scalars every reader understands alike."""


def _dumped(made: CommentedMap) -> str:
    out = io.StringIO()
    _yaml().dump(made, out)
    return out.getvalue()


def _yaml() -> YAML:
    made = YAML()
    made.Emitter = _Emitter
    made.width = 4096
    made.brace_single_entry_mapping_in_flow_sequence = True
    return made
