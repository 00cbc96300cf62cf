"""Compares a changed manifest with the live object, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.kinds.cluster.base.field_diffs import HIDDEN, PRIVATE
from bfinfra.kinds.cluster.workload.manifests import Manifest
from bfinfra.model.compare import Change

INJECTED = "kube-api-access-"
"""Prefix of the volume that a cluster gives to every pod."""


def differing(what: str, live: Manifest, manifest: Manifest) -> tuple[Change, ...]:
    """The fields of the manifest that differ in the object, by `what` and dotted path; list items by name or
    number. Leaves out what the API server filled in. () if nothing in the manifest differs: then it left
    something out.
    """
    wanted = {name: value for name, value in manifest.items() if name != "metadata"}
    return tuple(_between(what, live, wanted, private=False))


def _between(path: str, live: object, wanted: object, *, private: bool) -> Iterator[Change]:
    if isinstance(wanted, Mapping) and isinstance(live, Mapping | None):
        hidden = private or bool(PRIVATE.search(str(wanted.get("name", ""))))
        for name, value in wanted.items():
            yield from _between(
                f"{path}.{name}", (live or {}).get(name), value, private=hidden and name == "value"
            )
    elif (
        isinstance(wanted, list)
        and isinstance(live, list)
        and all(isinstance(each, Mapping) for each in (*wanted, *live))
    ):
        yield from _items(path, live, wanted)
    elif live != wanted:
        yield Change(path, *(HIDDEN if private else (live, wanted)))


def _items(path: str, live: list[Manifest], wanted: list[Manifest]) -> Iterator[Change]:
    """Items of lists with names are matched by name, other items by position."""
    before, after = _by_name(live), _by_name(wanted)
    for name, value in after.items():
        yield from _between(f"{path}.{name}", before.get(name), value, private=False)
    for name in before.keys() - after.keys():
        if "name" in before[name] and not name.startswith(INJECTED):
            yield Change(f"{path}.{name}", "there", None)


def _by_name(items: list[Manifest]) -> dict[str, Manifest]:
    return {
        str(each.get("name") or each.get("mountPath") or number): each for number, each in enumerate(items)
    }
