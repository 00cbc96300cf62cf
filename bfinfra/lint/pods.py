"""The pods in a file, from Pods and from the templates of workloads, with the place of each part."""

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
    """One container: its place, its name and its fields."""

    at: Place
    name: str
    fields: Entries

    def resources(self, what: str) -> Entries:
        """`requests` or `limits`."""
        return entries(child(entries(child(self.fields, "resources")), what))

    @property
    def asks(self) -> dict[str, Entry]:
        """The pod's requests of Bitfusion. A limit without a request is a request too."""
        found = {**self.resources("limits"), **self.resources("requests")}
        return {name: entry for name, entry in found.items() if name.startswith(PREFIX)}

    @property
    def command(self) -> list[Node]:
        """The elements of its command."""
        node = child(self.fields, "command")
        return node.value if node is not None and isinstance(node.value, list) else []


@dataclass(frozen=True)
class Pod:
    """One pod or template. `outer`: the annotations of its workload, which no webhook for pods sees."""

    at: Place
    kind: str
    name: str
    namespace: str
    annotations: Entries
    outer: Entries
    spec: Entries

    @property
    def containers(self) -> tuple[Container, ...]:
        """The containers, in the order of the file."""
        return _containers(self.spec, "containers")

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """The initContainers, in the order of the file."""
        return _containers(self.spec, "initContainers")

    @property
    def concerned(self) -> bool:
        """True if its annotations or a container's requests refer to Bitfusion."""
        named = any(
            name.startswith(("auto-management/", "bitfusion-client/"))
            for name in (*self.annotations, *self.outer)
        )
        return named or any(each.asks for each in (*self.containers, *self.init_containers))

    @property
    def asks(self) -> bool:
        """True if a container requests a resource that no node has, so that the webhook must change it."""
        return any(each.asks.keys() - {ALLOCATED} for each in self.containers)

    @property
    def switch(self) -> str:
        """The value of the annotation that enables the plug-in."""
        node = child(self.annotations, SWITCH)
        return text(node).lower()

    def container_of_gpus(self) -> list[tuple[int, Container]]:
        """The containers that request Bitfusion's resources, each with its index."""
        return [(number, each) for number, each in enumerate(self.containers) if each.asks]


def pods(root: Node) -> Iterator[Pod]:
    """The pods of one document. Items of a List are included."""
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
    """The value of a field, or None."""
    return fields[name].node if name in fields else None


def entries(node: Node | None) -> Entries:
    """The fields of a mapping; {} for anything else."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def text(node: Node | None) -> str:
    """A scalar's text, or ""."""
    return node.value if node is not None and isinstance(node.value, str) else ""
