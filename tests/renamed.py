"""A world whose objects have other names: those that somebody gave them on the server, which are any text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, unescape

from bfinfra.sandbox import Running, start, stop

NAME = re.compile(r">([^<>]*)</v>$")


def rename(
    sandbox: Running, world: Path, named: Callable[[str], str | None]
) -> tuple[Running, dict[str, str]]:
    """Stop it, give the objects of vCenter's inventory and REST API other names, start it again. `named`: old name →
    new one, or None where it keeps its own. Returns the old names with their new ones, too.
    """
    stop(sandbox.state)
    file = sandbox.state / "state.json"
    state = json.loads(file.read_text())
    names = {
        unescape(found[1])
        for each in state["inventory"]["objects"]
        if (found := NAME.search(each["props"].get("name", "")))
    }
    new = {name: other for name in sorted(names | set(_texts(state["rest"]))) if (other := named(name))}
    state["inventory"] = _replaced(state["inventory"], lambda text: _in_xml(text, new))
    state["rest"] = _replaced(state["rest"], lambda text: new.get(text, text))
    file.write_text(json.dumps(state))
    return start(world, sandbox.state, pace=0), new


def _in_xml(text: str, new: dict[str, str]) -> str:
    def whole(found: re.Match[str]) -> str:
        inner = unescape(found[1])
        return f">{_escaped(new[inner])}<" if inner in new else found[0]

    def store(found: re.Match[str]) -> str:
        inner = unescape(found[1])
        return f">[{_escaped(new[inner])}] " if inner in new else found[0]

    return re.sub(r">\[([^\]<>]*)\] ", store, re.sub(r">([^<>]*)<", whole, text))


def _escaped(text: str) -> str:
    return escape(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in _texts(part)]
    if isinstance(value, list):
        return [each for item in value for each in _texts(item)]
    return [value] if isinstance(value, str) else []


def _replaced(value: Any, new: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {new(name): _replaced(each, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, new) for each in value]
    return new(value) if isinstance(value, str) else value
