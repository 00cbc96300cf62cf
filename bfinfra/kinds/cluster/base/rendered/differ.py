"""Compares a manifest with the live object. While the object is of the same manifest, a field that bfinfra
still owns is as the server took it; else its value is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from bfinfra.backends.kubernetes.owned import owned_fields
from bfinfra.kinds.cluster.base.field_diffs import HIDDEN, PRIVATE
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED, Manifest, digest, id_of
from bfinfra.model.compare import Change

AS_RENDERED = "as rendered"
QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
FACTORS = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
EMPTY: tuple[Any, ...] = (None, "", 0, False, {}, [])


def field_changes(wanted: Manifest, live: Manifest) -> tuple[Change, ...]:
    """Return the differences, each by `Deployment a/b.spec.replicas`. () if the object is up to date."""
    what = str(id_of(wanted))
    same = of_same_manifest(wanted, live)
    fields = owned_fields(live) if same else {}
    secret = wanted["kind"] == "Secret"
    body = {name: value for name, value in wanted.items() if name not in ("apiVersion", "kind")}
    metadata = {name: value for name, value in body["metadata"].items() if name not in ("name", "namespace")}
    found = tuple(
        Change(f"{what}.{path}", *(HIDDEN if secret or private else (now, then)))
        for path, now, then, private in _between({**body, "metadata": metadata}, live, fields, "")
    )
    return found or (() if same else (Change(what, "of another rendering", AS_RENDERED),))


def of_same_manifest(wanted: Manifest, live: Manifest) -> bool:
    """Return whether the live object was made of this manifest."""
    noted = (live["metadata"].get("annotations") or {}).get(RENDERED)
    return bool(noted == digest(wanted))


Leaf = tuple[str, Any, Any, bool]


def _between(
    wanted: object, live: object, fields: Mapping[str, object] | None, path: str, *, private: bool = False
) -> Iterator[Leaf]:
    """Path, value now and wanted, and whether it is private, of each leaf that differs. `fields`: the owned
    ones, as fieldsV1 has them.
    """
    if fields is not None and path and not {*fields} - {"."} and not (isinstance(wanted, Mapping) and wanted):
        return  # of a mapping with fields, others have taken each of them
    if isinstance(wanted, Mapping) and isinstance(live, Mapping | None):
        hidden = private or bool(PRIVATE.search(str(wanted.get("name", ""))))
        for name, value in wanted.items():
            yield from _between(
                value,
                (live or {}).get(name),
                _below(fields, f"f:{name}"),
                f"{path}.{name}" if path else name,
                private=hidden and name == "value",
            )
    elif isinstance(wanted, list) and isinstance(live, list):
        yield from _items(wanted, live, fields, path)
    elif not _same(wanted, live):
        yield path, live, wanted, private


def _items(
    wanted: list[Any], live: list[Any], fields: Mapping[str, object] | None, path: str
) -> Iterator[Leaf]:
    for index, item in enumerate(wanted):
        entry = next((name for name in fields or () if _selects(name, item, index)), "")
        keys = json.loads(entry[2:]) if entry.startswith("k:") else None
        there = next((each for each in live if _alike(item, each, keys)), None)
        if there is None and keys is None and len(wanted) == len(live):
            there = live[index]
        label = _label(item, index, keys)
        yield from _between(item, there, _below(fields, entry), f"{path}.{label}")


def _below(fields: Mapping[str, object] | None, name: str) -> Mapping[str, Any] | None:
    """The owned fields below; None where nothing below is owned."""
    found = (fields or {}).get(name)
    return found if isinstance(found, Mapping) else None


def _selects(name: str, item: object, index: int) -> bool:
    kind, _, text = name.partition(":")
    if kind == "i":
        return text == str(index)
    if kind == "v":
        return bool(json.loads(text) == item)
    return kind == "k" and _alike(item, None, json.loads(text))


def _alike(item: object, live: object, keys: Mapping[str, object] | None) -> bool:
    """Return whether an item has these keys, as far as it has any of them; live items have all."""
    if not isinstance(item, Mapping):
        return bool(item == live)
    if keys is None:
        keys = {name: item[name] for name in ("name", "mountPath", "containerPort", "port") if name in item}
        keys = dict([*keys.items()][:1])
        return bool(keys) and isinstance(live, Mapping) and all(live.get(k) == v for k, v in keys.items())
    if live is not None:
        return isinstance(live, Mapping) and all(live.get(k) == v for k, v in keys.items())
    return all(item.get(k, v) == v for k, v in keys.items())


def _label(item: object, index: int, keys: Mapping[str, object] | None) -> str:
    if keys:
        return ",".join(str(value) for value in keys.values())
    return str(item.get("name") or index) if isinstance(item, Mapping) else str(index)


def _same(wanted: object, live: object) -> bool:
    """Return whether two values mean the same to a server."""
    if wanted == live or (_empty(wanted) and _empty(live)):
        return True
    if isinstance(wanted, list | Mapping) or isinstance(live, list | Mapping):
        return False
    first, second = _quantity(wanted), _quantity(live)
    return first is not None and first == second


def _empty(value: object) -> bool:
    return value in EMPTY


def _quantity(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = QUANTITY.fullmatch(str(value))
    return Decimal(found[1]) * FACTORS[found[2] or ""] if found else None
