"""Finds the line and column in a world file of a field that has a mistake."""

from __future__ import annotations

from pathlib import Path

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ENDS = ("", ".", "[", ":", " ")
"""The characters that may follow a whole key."""


def located(path: Path, text: bytes, message: str) -> str:
    """The message with `file:line:column` in front of each line that begins with a field, or with the file's
    name and a field: `world.yaml.clusters.farm: …` → `world.yaml:12:3: clusters.farm: …`.
    """
    root = yaml.compose(text, Loader=LOADER)
    return "\n".join(_line(str(path), root, line) for line in message.splitlines())


def _line(file: str, root: yaml.Node | None, line: str) -> str:
    message = line.removeprefix(file).lstrip(":. ")
    left = message if message.startswith("[") else f".{message}"
    place = root.start_mark if root and message != line else None
    node = root
    while node is not None:
        node, step, mark = _step(node, left)
        if step:
            place, left = mark, left[len(step) :]
    return f"{file}:{place.line + 1}:{place.column + 1}: {message}" if place else f"{file}: {message}"


def _step(node: yaml.Node, left: str) -> tuple[yaml.Node | None, str, yaml.Mark]:
    """The node under the next key or index of a path, that key or index, and where it is written; no node
    where the path ends.
    """
    if isinstance(node, yaml.MappingNode):
        keys = [
            (key, value)
            for key, value in node.value
            if left.startswith(f".{key.value}") and left[len(key.value) + 1 :][:1] in ENDS
        ]
        if keys:
            key, value = max(keys, key=lambda each: len(each[0].value))
            scalar = isinstance(value, yaml.ScalarNode)
            return value, f".{key.value}", value.start_mark if scalar else key.start_mark
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            if left.startswith(f"[{number}]"):
                return value, f"[{number}]", value.start_mark
    return None, "", node.start_mark
