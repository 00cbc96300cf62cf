"""YAML: comments, values, whole documents, that every reader of YAML understands alike.

Readers differ: PyYAML ends a line at U+2028, ruamel.yaml doesn't; `1e3` is text to PyYAML and a number to
kubectl. So a text with an invisible character is written in double quotes with escapes, and a text that any
of them may take for something else in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from bfinfra.formats.visible import visible

LOOKS_OTHERWISE = re.compile(
    r"""(?ix)
    y | n | yes | no | on | off | true | false | null | ~ | = | <<
    | [-+]? (0b[01_]+ | 0o[0-7_]+ | 0x[0-9a-f_]+)
    | [-+]? (\.[0-9_]+ | [0-9][0-9_]* (\.[0-9_]*)?) (e[-+]?[0-9]+)?
    | [-+]? [0-9][0-9_]* (:[0-5]?[0-9])+ (\.[0-9_]*)?
    | [-+]? \.inf | \.nan
    | [0-9]{4}-[0-9][0-9]?-[0-9][0-9]? (t|\s|$) .*
    """
)
"""Text that a reader of YAML 1.1 or 1.2 may take for a boolean, a number, a date, nothing, or a merge."""
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


class Readable:
    """A part of PyYAML's and ruamel.yaml's emitters: chooses how a scalar is quoted, and writes it."""

    event: Any
    flow_level: int
    quotes_lookalikes = True
    """False: text without quotes stays so, as it was written."""

    def choose_scalar_style(self) -> Any:
        """Double quotes where a reader might see something else, or a person nothing."""
        text = self.event.value
        if not text.replace("\n", "").isprintable() or (self.flow_level and text[:1] in ("?", ":")):
            return '"'
        style = super().choose_scalar_style()  # type: ignore[misc]  # an emitter's
        plain = not style and self.event.implicit[1] and self.quotes_lookalikes
        return '"' if plain and LOOKS_OTHERWISE.fullmatch(text) else style

    def write_double_quoted(self, text: str, split: object = True) -> None:
        """On one line, with every invisible character escaped."""
        self.write_indicator(quoted(text), True)  # type: ignore[attr-defined]  # an emitter's


class Dumper(Readable, yaml.SafeDumper):
    """PyYAML's dumper with these scalars, and without aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """A value that occurs twice is written twice."""
        return True


def quoted(text: str) -> str:
    r"""A scalar in double quotes, on one line. Half of a surrogate pair, which no YAML holds, becomes the
    text `\ud800`.
    """
    return '"' + "".join(map(_escaped, text)) + '"'


def comment(text: object) -> str:
    """A comment of one line."""
    return f"# {visible(text)}"


def scalar(text: str) -> str:
    """A text as it can follow `key: `, without quotes where it needs none."""
    return dumped(text).removesuffix("\n").removesuffix("\n...")


def dumped(value: object, **options: Any) -> str:
    """A document. `options`: of yaml.dump."""
    return dumped_all([value], **options)


def dumped_all(values: Iterable[object], **options: Any) -> str:
    """Documents, one after the other, with keys in their order."""
    kept: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "Dumper": Dumper} | options
    return str(yaml.dump_all(values, **kept))


def holds(value: object) -> bool:
    """Return whether YAML can hold every text in a value: halves of surrogate pairs it can't."""
    if isinstance(value, Mapping):
        return all(map(holds, value)) and all(map(holds, value.values()))
    if isinstance(value, list | tuple):
        return all(map(holds, value))
    return not (isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value))


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return f"\\\\u{code:04x}"
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
