"""Selects the objects of a filter specification, and the paths of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.paths import read
from bfinfra.sandbox.inventory.permissions import holds
from bfinfra.sandbox.inventory.vmtypes import moid, support, vim, vmodl, wsdl_type
from bfinfra.sandbox.soap.properties import all_paths

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.soap.dispatch import Call

Selected = list[tuple["Managed", list[str]]]


def select(call: Call, spec: Any) -> Selected:
    """The objects of a FilterSpec in the order found, each once, with the requested paths. Raises
    ManagedObjectNotFound for a start that no longer exists.
    """
    walk = _Walk(call)
    for start in spec.objectSet:
        try:
            managed = start_of(call, start.obj)
        except vmodl.fault.ManagedObjectNotFound:
            if spec.reportMissingObjectsInResults:
                continue
            raise
        walk.visit(managed, start.selectSet, keep=not start.skip)
    wanted = {}
    found: Selected = []
    for managed in walk.found.values():
        if managed.kind not in wanted:
            wanted[managed.kind] = paths_of(spec.propSet, managed)
        paths = wanted[managed.kind]
        if paths is not None:
            found.append((managed, paths))
    return found


def start_of(call: Call, ref: object) -> Managed:
    """The object to start at; a view is seen by its own session only."""
    managed = call.inventory.get(ref)
    owner = managed.hidden.get("session")
    if owner is not None and (call.session is None or call.session.key != owner):
        if call.session is None:
            raise vim.fault.NotAuthenticated(
                object=ref, privilegeId="System.View", msg="The session is not authenticated."
            )
        raise vmodl.fault.ManagedObjectNotFound(obj=ref)
    return managed


def visible(call: Call, managed: Managed) -> bool:
    """Return whether the caller may see the object at all; lists leave out what he may not."""
    return call.session is not None and holds(call.inventory, call.session.user, "System.View", managed)


def paths_of(prop_set: Any, managed: Managed) -> list[str] | None:
    """The union of the paths of all specifications whose type the object has; None where none fits."""
    fitting = [each for each in prop_set if issubclass(type(managed.ref), kind_of(each.type))]
    if not fitting:
        return None
    if any(each.all for each in fitting):
        return all_paths(managed)
    return list(dict.fromkeys(path for each in fitting for path in each.pathSet))


def kind_of(kind: object) -> Any:
    """A type given as a type or by its wire name."""
    return wsdl_type(kind) if isinstance(kind, str) else kind


class _Walk:
    """Follows traversal specifications; `found` are the objects not skipped."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.found: dict[str, Managed] = {}
        self.named: dict[str, Any] = {}
        self.visited: set[tuple[str, int]] = set()

    def visit(self, managed: Managed, selections: Any, *, keep: bool) -> None:
        """Take the object and what its selections reach."""
        pending = [(managed, selections, keep)]
        while pending:
            at, steps, kept = pending.pop()
            if kept:
                self.found.setdefault(at.moid, at)
            self.learn(steps)
            for step in reversed(list(steps)):
                pending.extend(reversed(self.follow(at, step)))

    def learn(self, selections: Any) -> None:
        """Remember traversals by name: a selection may refer to one that comes later."""
        for each in selections:
            if isinstance(each, vmodl.query.PropertyCollector.TraversalSpec):
                if each.name and each.name not in self.named:
                    self.named[each.name] = each
                    self.learn(each.selectSet)
                elif not each.name:
                    self.learn(each.selectSet)

    def follow(self, managed: Managed, step: Any) -> list[tuple[Managed, Any, bool]]:
        """The objects that one step reaches from here."""
        if not isinstance(step, vmodl.query.PropertyCollector.TraversalSpec):
            step = self.named.get(step.name)
            if step is None:
                raise vmodl.fault.InvalidArgument(
                    invalidProperty="selectSet", msg="a SelectionSpec names no TraversalSpec"
                )
        if not issubclass(type(managed.ref), kind_of(step.type)) or (managed.moid, id(step)) in self.visited:
            return []
        if self.call.session is None:
            return []
        self.visited.add((managed.moid, id(step)))
        value = read(self.call.inventory, managed, step.path)
        refs = value if isinstance(value, list) else [value]
        reached = (
            self.call.inventory.objects.get(moid(ref))
            for ref in refs
            if isinstance(ref, support.ManagedObject)
        )
        return [
            (each, step.selectSet, not step.skip)
            for each in reached
            if each is not None and visible(self.call, each)
        ]
