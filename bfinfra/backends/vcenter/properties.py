"""Reading properties in bulk: leaf or keyed paths only, pages always, and nothing missing goes unnoticed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyVmomi import vim, vmodl

from bfinfra.backends.vcenter import faults, refs
from bfinfra.model.errors import Missing

PAGE = 500  # objects; a real server pages anyway, asking exercises the loop everywhere
Collector = vmodl.query.PropertyCollector


@dataclass(frozen=True, slots=True)
class Row:
    """One object: its reference and the properties that are set, by path as asked."""

    ref: Any
    values: Mapping[str, Any]

    @property
    def moid(self) -> str:
        """Its id, as `vm-42`."""
        return refs.moid(self.ref)

    def __getitem__(self, path: str) -> Any:
        return self.values.get(path)


def below(content: Any, root: Any, asked: Mapping[type[Any], Sequence[str]]) -> list[Row]:
    """All objects of the asked types below `root`, each with the asked paths, in one collector call (and its pages).

    The view stays for the session. It must answer for itself, or a view that is gone would show an empty world.
    """
    views, key = refs.views(content), (refs.moid(root), *sorted(kind.__name__ for kind in asked))
    walk = Collector.TraversalSpec(name="view", path="view", skip=False, type=vim.view.ContainerView)
    for _ in range(2):
        if key not in views:
            views[key] = content.viewManager.CreateContainerView(root, list(asked), recursive=True)
        view, rows = refs.moid(views[key]), []
        with contextlib.suppress(Missing):
            objects = [Collector.ObjectSpec(obj=views[key], skip=False, selectSet=[walk])]
            rows = _retrieve(content, objects, {**asked, vim.view.ContainerView: ["container"]})
        if any(row.moid == view for row in rows):
            return [row for row in rows if row.moid != view]
        views.pop(key, None)
    raise Missing(f"what is below {refs.moid(root)} can't be listed", server=refs.server(content), why="the server forgets its views")


def of(content: Any, objects: Iterable[Any], paths: Sequence[str]) -> list[Row]:
    """The paths of these objects, all of one type; objects that are gone are left out."""
    listed = list(objects)
    if not listed:
        return []
    return _retrieve(content, [Collector.ObjectSpec(obj=ref, skip=False) for ref in listed], {type(listed[0]): paths})


def one(content: Any, ref: Any, paths: Sequence[str]) -> Row:
    """The paths of one object. Raises Missing where it is gone."""
    for row in of(content, [ref], paths):
        return row
    raise Missing(f"{refs.moid(ref)} is gone", server=refs.server(content))


def _retrieve(content: Any, objects: list[Any], asked: Mapping[type[Any], Sequence[str]]) -> list[Row]:
    wanted = [Collector.PropertySpec(type=kind, pathSet=list(paths), all=False) for kind, paths in asked.items()]
    query = Collector.FilterSpec(objectSet=objects, propSet=wanted, reportMissingObjectsInResults=True)
    page = content.propertyCollector.RetrievePropertiesEx([query], Collector.RetrieveOptions(maxObjects=PAGE))
    rows: list[Row] = []
    while page is not None:
        rows += [_row(found, content) for found in page.objects or () if not _gone(found)]
        page = content.propertyCollector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    return rows


def _row(found: Any, content: Any) -> Row:
    for missing in found.missingSet or ():
        if not isinstance(missing.fault, (vmodl.fault.ManagedObjectNotFound, vmodl.query.InvalidProperty)):
            raise faults.of_fault(missing.fault, f"{missing.path} of {refs.moid(found.obj)} can't be read", refs.server(content))
    return Row(found.obj, {p.name: p.val for p in found.propSet or ()})


def _gone(found: Any) -> bool:
    return any(isinstance(m.fault, vmodl.fault.ManagedObjectNotFound) for m in found.missingSet or ())
