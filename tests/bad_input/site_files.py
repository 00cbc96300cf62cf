"""Site files for the fuzzer: what the schema allows with wrong things in between, and the files in specs/
with bytes changed.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from bad_input import corpus, nasty
from hypothesis import strategies as st

from bfinfra.spec.schema import schema

SPECS = Path(__file__).parents[2] / "specs"
WRITTEN = [
    path.read_bytes() for path in sorted([SPECS / "singapore-poc.yaml", *(SPECS / "kinds").glob("*.yaml")])
]
NAMES = (
    "team-a",
    "cluster-01",
    "bf-01",
    "esx1.small.test",
    "a",
)  # few, so that references lead somewhere and names meet
CANARY = Path(tempfile.gettempdir()) / f"bfinfra-hostile-{os.getpid()}"
ACTING = tuple(corpus.values(CANARY).values())  # leave files beside the canary wherever they are run
WRONG = 40  # one value in so many is not what the schema asks for
DEEPEST = 6
PIECES = st.sampled_from(
    [
        *nasty.BYTES,
        *(
            each.encode(errors="surrogatepass")
            for each in (*nasty.YAML, *nasty.WORDS, *nasty.ESCAPES, *ACTING)
        ),
    ]
)
PLAIN = {"integer": st.integers(0, 9), "boolean": st.booleans(), "number": st.floats(0, 9)}
Draw = Callable[[Any], Any]


@functools.cache
def language() -> dict[str, Any]:
    """What a site may say; nobody changes it."""
    return schema(values=False)


@functools.cache
def words() -> st.SearchStrategy[str]:
    return (
        st.sampled_from(nasty.WORDS)
        | st.sampled_from(nasty.ESCAPES)
        | st.sampled_from(ACTING)
        | st.builds("a{}b".format, st.sampled_from(nasty.ESCAPES))
        | st.sampled_from(NAMES)
        | st.text(max_size=8)
    )


@functools.cache
def anything(depth: int = 2) -> st.SearchStrategy[Any]:
    """Any YAML value, shallow."""
    plain = words() | st.integers() | st.floats() | st.booleans() | st.none()
    return (
        plain
        if depth == 0
        else plain
        | st.lists(anything(depth - 1), max_size=2)
        | st.dictionaries(words(), anything(depth - 1), max_size=2)
    )


@st.composite
def from_schema(draw: Draw) -> bytes:
    """A document that the schema describes, more or less, as YAML or JSON."""
    whole = language()
    made = {"site": draw(st.sampled_from(NAMES) | words())}
    if draw(st.booleans()):
        made["vcenter"] = {
            "server": "vc.small.test",
            "username": "a@b",
            "password": {"env": "VCENTER_PASSWORD"},
            "trust": {"ca_file": "ca.pem"},
        }
    for kind in draw(
        st.lists(st.sampled_from(sorted(whole["properties"])), min_size=1, max_size=4, unique=True)
    ):
        made.setdefault(kind, _value(draw, whole["properties"][kind], whole["definitions"], 0))
    return draw(st.sampled_from((_json, _block, _flow)))(made)


@st.composite
def from_file(draw: Draw) -> bytes:
    """A file of specs/ with a few changes, each to bytes, pieces or lines."""
    return draw(changed(draw(st.sampled_from(WRITTEN))))


@st.composite
def changed(draw: Draw, data: bytes) -> bytes:
    """A file that is right, with a few changes."""
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        data = change(draw, data)
    return data


def site_files() -> st.SearchStrategy[bytes]:
    return from_file() | from_schema() | from_schema().flatmap(_spoilt)


@st.composite
def _spoilt(draw: Draw, data: bytes) -> bytes:
    return draw(st.sampled_from(CHANGES))(draw, data)


def _value(draw: Draw, field: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
    if draw(st.integers(0, WRONG)) == 0:
        return draw(anything())
    if "$ref" in field:
        return _value(draw, known[field["$ref"].rpartition("/")[2]], known, depth)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in field:
            return _value(draw, draw(st.sampled_from(field[choice])), known, depth)
    if "const" in field or "enum" in field:
        return draw(st.sampled_from(field.get("enum") or [field["const"]]))
    kind = field.get("type")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    made = {"object": _object, "array": _array, "string": _text}.get(kind)
    if made is None or depth > DEEPEST:
        return draw(PLAIN.get(kind, words()))
    return made(draw, field, known, depth + 1)


def _object(draw: Draw, field: dict[str, Any], known: dict[str, Any], depth: int) -> dict[str, Any]:
    written = [*field.get("properties", {}).items()]
    made = {
        name: _value(draw, inner, known, depth)
        for name, inner in written
        if name in field.get("required", ()) or draw(st.integers(0, 2)) == 0
    }
    more = field.get("additionalProperties") or next(iter(field.get("patternProperties", {}).values()), None)
    if isinstance(more, dict):
        made |= {
            name: _value(draw, more, known, depth)
            for name in draw(st.lists(st.sampled_from(NAMES) | words(), max_size=2))
        }
    return made


def _array(draw: Draw, field: dict[str, Any], known: dict[str, Any], depth: int) -> list[Any]:
    return [
        _value(draw, field.get("items", {}), known, depth)
        for _ in range(draw(st.integers(field.get("minItems", 0), 2)))
    ]


def _text(draw: Draw, field: dict[str, Any], known: dict[str, Any], depth: int) -> str:
    if draw(st.integers(0, 3)) == 0:
        return draw(words())
    return draw(_like(field.get("pattern", "")))


@functools.cache
def _like(pattern: str) -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES) | st.from_regex(pattern) if pattern else st.sampled_from(NAMES)


def _json(made: Any) -> bytes:
    return json.dumps(made).encode()


def _block(made: Any) -> bytes:
    return yaml.safe_dump(made, allow_unicode=True).encode(errors="surrogatepass")


def _flow(made: Any) -> bytes:
    return yaml.safe_dump(made, default_flow_style=True, width=1 << 20).encode(errors="surrogatepass")


def _spot(draw: Draw, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def _put(draw: Draw, data: bytes) -> bytes:
    piece = draw(PIECES)
    at = _spot(draw, data)
    return data[:at] + piece + data[at:]


def _flip(draw: Draw, data: bytes) -> bytes:
    at = _spot(draw, data)
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


def _cut(draw: Draw, data: bytes) -> bytes:
    begin, end = sorted((_spot(draw, data), _spot(draw, data)))
    return data[:begin] + data[end:]


def _again(draw: Draw, data: bytes) -> bytes:
    begin, at = _spot(draw, data), _spot(draw, data)
    return (
        data[:at]
        + data[begin : begin + draw(st.integers(1, 200))] * draw(st.sampled_from((1, 2, 50)))
        + data[at:]
    )


def _value_of_line(draw: Draw, data: bytes) -> bytes:
    """Another value after a line's colon."""
    lines = data.split(b"\n")
    at = draw(st.integers(0, len(lines) - 1))
    lines[at] = (
        lines[at].partition(b":")[0]
        + b": "
        + draw(words() | anything().map(json.dumps)).encode(errors="surrogatepass")
    )
    return b"\n".join(lines)


def _shift(draw: Draw, data: bytes) -> bytes:
    """A line further in or out, or elsewhere."""
    lines = data.split(b"\n")
    at, to = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    line = lines.pop(at)
    lines.insert(
        to,
        draw(st.sampled_from((b"", b" ", b"  ", b"\t"))) + (line if draw(st.booleans()) else line.lstrip()),
    )
    return b"\n".join(lines)


CHANGES = (_put, _flip, _cut, _again, _value_of_line, _shift)
