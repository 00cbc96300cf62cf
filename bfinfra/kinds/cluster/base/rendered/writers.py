"""Finds the other managers that wrote the fields of an object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from bfinfra.backends.kubernetes.owned import others_fields
from bfinfra.kinds.cluster.base.rendered.state import State
from bfinfra.model.kind import LastWriter


def writers(state: State, fields: Sequence[str]) -> dict[str, LastWriter]:
    """The last other writer of each field, such as `Deployment a/b.spec.replicas`, as far as known."""
    found: dict[str, LastWriter] = {}
    for each, thing in state.things.items():
        asked = [field for field in fields if field == str(each) or field.startswith(f"{each}.")]
        if not asked:
            continue
        theirs = [
            (path, LastWriter(by, at))
            for by, at, owned in others_fields(thing.manifest)
            for path in _paths(owned, "")
        ]
        for field in asked:
            path = field.removeprefix(str(each)).removeprefix(".")
            fit = [writer for other, writer in theirs if _meets(path, other)]
            if fit:
                found[field] = max(fit, key=lambda writer: writer.at or 0)
    return found


def _meets(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.") or other.startswith(f"{path}." if path else "")


def _paths(fields: Mapping[str, object], above: str) -> Iterator[str]:
    """The owned leaves, with list items as `differ` names them."""
    inner = {name: below for name, below in fields.items() if name != "."}
    if not inner and above:
        yield above
    for name, below in inner.items():
        kind, _, text = name.partition(":")
        part = ",".join(str(value) for value in json.loads(text).values()) if kind == "k" else text
        yield from _paths(below if isinstance(below, Mapping) else {}, f"{above}.{part}" if above else part)
