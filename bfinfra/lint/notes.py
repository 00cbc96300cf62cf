"""Checks of annotations: the switch, the client's system and version, filters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bfinfra.lint.pods import Pod, text
from bfinfra.model.device_plugin import CLIENT, FILTER, FILTERS, OS, STATUS, SWITCH, Release
from bfinfra.model.remark import Remark, error, refused, warning
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import Entry

OF_PLUGIN = "bwki"
"""The webhook's namespace, unless somebody chose another."""
SYSTEM = ("kube-system", "kube-public")
TYPED = frozenset(
    word
    for each in ("y", "yes", "true", "on", "n", "no", "false", "off", "null")
    for word in (each, each.capitalize(), each.upper())
) | {"~"}
"""Words that YAML reads as a boolean or null without quotes. Annotations are text."""
OWN = ("auto-management/", "bitfusion-client/")


class Hidden(NamedTuple):
    """The reason why the webhook doesn't see the pods of a namespace, and what to do; empty if it
    sees them.
    """

    why: str = ""
    next: str = ""

    def __bool__(self) -> bool:
        return bool(self.why)


def rules(pod: Pod, release: Release, hidden: Hidden | None) -> Iterator[Remark]:
    """The remarks of all rules. `hidden`: why the webhook doesn't see pods of this namespace; None if
    unknown.
    """
    yield from _unquoted(pod)
    yield from _switch(pod, release, hidden)
    yield from _outer(pod)
    yield from _unknown(pod, release)
    if pod.switch in release.switch:
        yield from _client(pod, release)
        yield from _filters(pod, release)
        yield from _lost(pod)


def _unquoted(pod: Pod) -> Iterator[Remark]:
    for name, entry in pod.annotations.items():
        at, value = entry.node.at, text(entry.node)
        if entry.node.plainly and (
            value in TYPED or value.replace(".", "", 1).isdigit() or entry.node.value is None
        ):
            yield refused(
                f"the annotation {name} is not text",
                at,
                "the API server refuses annotations that aren't text",
                f'write it in quotes: "{value}"',
            )


def _switch(pod: Pod, release: Release, hidden: Hidden | None) -> Iterator[Remark]:
    if pod.switch not in release.switch:
        at = pod.annotations[SWITCH].place if SWITCH in pod.annotations else pod.at
        was = f"is {pod.switch!r}, which does not enable it" if SWITCH in pod.annotations else "is missing"
        yield refused(
            f"the annotation {SWITCH} {was}",
            at,
            f"release {release.version} knows {', '.join(release.switch)}; any other pod stays as it is",
            f'write {SWITCH}: "yes" to the metadata of the pod',
            stops=pod.asks,
        )
    elif pod.namespace in SYSTEM:
        yield refused(
            f"the webhook skips pods in {pod.namespace}",
            pod.at,
            next="use your own namespace",
            stops=pod.asks,
        )
    elif hidden:
        yield refused(
            f"pods in {pod.namespace} don't reach the device plug-in's webhook",
            pod.at,
            hidden.why,
            hidden.next,
            stops=pod.asks,
        )
    elif hidden is None and pod.namespace == OF_PLUGIN:
        yield warning(
            f"pods in {pod.namespace} don't reach a webhook that bfinfra installed",
            pod.at,
            "it excludes the webhook's own namespace; upstream's own files include it",
            "use your own namespace",
        )
    if text(pod.annotations[STATUS].node if STATUS in pod.annotations else None).lower() == "injected":
        yield refused(
            f"the annotation {STATUS} says that the webhook changed the pod already",
            pod.annotations[STATUS].at,
            "the webhook skips such pods",
            "remove it",
            stops=pod.asks,
        )


def _outer(pod: Pod) -> Iterator[Remark]:
    for name, entry in pod.outer.items():
        if name.startswith(OWN):
            yield error(
                f"the annotation {name} is on the {pod.kind}",
                entry.at,
                "the webhook reads the annotations of pods",
                "move it to spec.template.metadata.annotations",
            )


def _unknown(pod: Pod, release: Release) -> Iterator[Remark]:
    known = (
        SWITCH,
        STATUS,
        *((OS, CLIENT) if release.clients else ()),
        *((FILTER,) if release.filters else ()),
    )
    for name, entry in pod.annotations.items():
        if name.startswith(OWN) and name not in known:
            later = "later releases do" if name in (OS, CLIENT, FILTER) else ""
            yield error(
                f"release {release.version} doesn't know the annotation {name}",
                entry.at,
                later,
                nearest(name, known) or f"it knows {', '.join(known)}",
            )


def _client(pod: Pod, release: Release) -> Iterator[Remark]:
    if not release.clients:
        return
    found = {
        name: text(pod.annotations[name].node) if name in pod.annotations else "" for name in (OS, CLIENT)
    }
    for name, value in found.items():
        if not value:
            example = release.clients[0].os if name == OS else release.clients[0].version
            yield refused(
                f"the annotation {name} is missing",
                pod.annotations[SWITCH].at,
                "without it the webhook silently skips the pod",
                f'write {name}: "{example}"',
                stops=pod.asks,
            )
    if all(found.values()) and (found[OS], found[CLIENT]) not in {
        (each.os, each.version) for each in release.clients
    }:
        known = ", ".join(sorted({f"{each.os}/{each.version}" for each in release.clients}))
        yield warning(
            f"release {release.version} has no client {found[CLIENT]} for {found[OS]}",
            pod.annotations[CLIENT].place,
            f"it has {known}; others must be in the plug-in's clients",
            "choose one of these, or ask who runs the cluster",
        )


def _filters(pod: Pod, release: Release) -> Iterator[Remark]:
    entry: Entry | None = pod.annotations.get(FILTER)
    for condition in text(entry.node).split() if entry and release.filters else ():
        name, sign, value = condition.partition("=")
        if name not in FILTERS:
            yield warning(
                f"{name or condition} is not a documented filter",
                entry.place if entry else pod.at,
                next=nearest(name, FILTERS) or ", ".join(FILTERS),
            )
        elif not (sign and value):
            yield error(
                f"the filter {condition} has no value",
                entry.place if entry else pod.at,
                next=f"write {name}=VALUE, several with blanks between",
            )


def _lost(pod: Pod) -> Iterator[Remark]:
    others = [name for name in pod.annotations if not name.startswith(OWN)]
    if others:
        yield warning(
            f"the annotation {others[0]} is lost" + (f", and {len(others) - 1} more" if others[1:] else ""),
            pod.annotations[others[0]].at,
            "the webhook replaces all annotations of a pod by its own",
            "don't let other controllers depend on them",
        )
