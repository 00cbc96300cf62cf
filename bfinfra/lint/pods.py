"""The pods in a file: of a Pod itself, and of what makes pods from a template; with the place of everything
in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.model.device_plugin import ALLOCATED, GROUP, SWITCH
from bfinfra.model.errors import Place
from bfinfra.model.records import dataclass
from bfinfra.model.yaml import Entry, Node

TEMPLATES = {
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
Entries = Mapping[str, Entry]
PREFIX = f"{GROUP}/"


@dataclass(frozen=True)
class Container:
    """One container: where it stands, its name, and its fields."""

    at: Place
    name: str
    fields: Entries

    def resources(self, what: str) -> Entries:
        """`requests` or `limits`."""
        return entries(child(entries(child(self.fields, "resources")), what))

    @property
    def asks(self) -> dict[str, Entry]:
        """What it asks of Bitfusion: a limit that stands alone is a request, too."""
        found = {**self.resources("limits"), **self.resources("requests")}
        return {name: entry for name, entry in found.items() if name.startswith(PREFIX)}

    @property
    def command(self) -> list[Node]:
        """The elements of its command."""
        node = child(self.fields, "command")
        return node.value if node is not None and isinstance(node.value, list) else []


@dataclass(frozen=True)
class Pod:
    """One pod or template. `outer`: the annotations of what makes it, which no webhook for pods sees."""

    at: Place
    kind: str
    name: str
    namespace: str
    annotations: Entries
    outer: Entries
    spec: Entries

    @property
    def containers(self) -> tuple[Container, ...]:
        """In the order of the file."""
        return _containers(self.spec, "containers")

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """Those that run before them."""
        return _containers(self.spec, "initContainers")

    @property
    def concerned(self) -> bool:
        """Whether it has anything to do with Bitfusion."""
        named = any(
            name.startswith(("auto-management/", "bitfusion-client/"))
            for name in (*self.annotations, *self.outer)
        )
        return named or any(each.asks for each in (*self.containers, *self.init_containers))

    @property
    def asks(self) -> bool:
        """Whether a container asks for what no node has, so that the webhook must see it."""
        return any(each.asks.keys() - {ALLOCATED} for each in self.containers)

    @property
    def switch(self) -> str:
        """The value that turns the plug-in on, as it reads it."""
        node = child(self.annotations, SWITCH)
        return text(node).lower()

    def container_of_gpus(self) -> list[tuple[int, Container]]:
        """Those that ask Bitfusion for something, with their positions."""
        return [(number, each) for number, each in enumerate(self.containers) if each.asks]


def pods(root: Node) -> Iterator[Pod]:
    """The pods of one document; a List is read through."""
    top = entries(root)
    kind = text(child(top, "kind"))
    if kind == "List" or (not kind and "items" in top):
        items = child(top, "items")
        for item in items.value if items is not None and isinstance(items.value, list) else []:
            yield from pods(item)
    elif kind == "Pod":
        yield _pod(root, top, kind, top)
    elif path := TEMPLATES.get(kind):
        inner = top
        for step in path:
            inner = entries(child(inner, step))
        yield _pod(root, top, kind, inner)


def _pod(root: Node, top: Entries, kind: str, inner: Entries) -> Pod:
    outer, own = entries(child(top, "metadata")), entries(child(inner, "metadata"))
    return Pod(
        top["kind"].at if "kind" in top else root.at,
        kind,
        text(child(outer, "name")),
        text(child(outer, "namespace")),
        entries(child(own, "annotations")),
        entries(child(outer, "annotations")) if top is not inner else {},
        entries(child(inner, "spec")),
    )


def _containers(spec: Entries, what: str) -> tuple[Container, ...]:
    node = child(spec, what)
    listed = node.value if node is not None and isinstance(node.value, list) else []
    return tuple(Container(each.at, text(child(entries(each), "name")), entries(each)) for each in listed)


def child(fields: Entries, name: str) -> Node | None:
    """The value of a field, None where it isn't there."""
    return fields[name].node if name in fields else None


def entries(node: Node | None) -> Entries:
    """The fields of a mapping; none where it is no mapping."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def text(node: Node | None) -> str:
    """A scalar's text; "" where there is none."""
    return node.value if node is not None and isinstance(node.value, str) else ""
