"""User pods, read as the Bitfusion device plug-in's webhook will read them: what it will refuse, skip or
spoil. Pure; asks no cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bfinfra.lint import commands, containers, indent, notes, resources
from bfinfra.lint.pods import Pod, pods
from bfinfra.model.device_plugin import NEWEST, RELEASES, SYSTEM, Client, Version
from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.remark import Remark, error
from bfinfra.model.yaml import LARGEST, Unreadable, compose_all

__all__ = ["Asked", "Installed", "lint", "lint_pods"]


@dataclass(frozen=True, slots=True)
class Installed:
    """A plug-in whose settings are known. `beside`: the namespaces of its webhook and of itself;
    `namespaces`: the only ones shown, if any.
    """

    clients: tuple[Client, ...]
    beside: tuple[str, ...]
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The plug-in's release, and its TOTAL_GPU_MEMORY in MB, 0 where it isn't known.

    `namespace`: where the pods go, whatever they say; "" = what they say. `installed`: the plug-in that will
    see them, where it is known.
    """

    version: Version = NEWEST
    total_gpu_memory: int = 0
    namespace: str = ""
    installed: Installed | None = None


def lint(file: Path, text: str, asked: Asked) -> tuple[Remark, ...]:
    """What is wrong with a file of manifests, in the order of its lines. Pods that don't ask for Bitfusion's
    GPUs are none of its business.
    """
    if len(text.encode(errors="replace")) > LARGEST:
        return (
            error(
                f"it is larger than {LARGEST >> 20} MiB",
                str(file),
                next="give the pods in a file of their own",
            ),
        )
    try:
        roots, problems = compose_all(file, text)
    except Unreadable as broken:
        return (Remark("error", indent.explained(broken.problem, text)),)
    found = [Remark("error", problem) for problem in problems]
    seen = [pod for root in roots for pod in pods(root)]
    if not seen:
        found.append(
            error(
                "it holds no pod, and nothing that makes pods",
                str(file),
                next="give a Pod, Deployment, StatefulSet, DaemonSet, Job or CronJob",
            )
        )
    return tuple(sorted([*found, *(remark for pod in seen for remark in _of(pod, asked))], key=_place))


def lint_pods(file: Path, text: str, asked: Asked) -> tuple[Remark, ...]:
    """The same of the pods alone: what can't be read, and files without pods, are for others to tell."""
    try:
        roots, _ = compose_all(file, text)
    except Unreadable:
        return ()
    return tuple(
        sorted((remark for root in roots for pod in pods(root) for remark in _of(pod, asked)), key=_place)
    )


def _of(pod: Pod, asked: Asked) -> Iterator[Remark]:
    if pod.concerned:
        pod = replace(pod, namespace=asked.namespace or pod.namespace)
        release = RELEASES[asked.version]
        if asked.installed is not None:
            release = replace(release, clients=asked.installed.clients)
        known = asked.total_gpu_memory or asked.installed is not None
        yield from notes.rules(pod, release, _hidden(pod.namespace, asked.installed))
        yield from containers.rules(pod, release)
        yield from resources.rules(pod, release, asked.total_gpu_memory if known else None)
        yield from commands.rules(pod, release)
        yield from indent.rules(pod)


def _hidden(namespace: str, installed: Installed | None) -> notes.Hidden | None:
    if installed is None:
        return None
    if namespace in (*SYSTEM, *installed.beside):
        return notes.Hidden(
            "neither the system's nor those beside the plug-in and its webhook ever are",
            "use a namespace of your own",
        )
    if installed.namespaces and namespace not in installed.namespaces:
        return notes.Hidden(
            f"it is shown those of {', '.join(installed.namespaces)}", "add it to the plug-in's namespaces"
        )
    return notes.Hidden()


def _place(remark: Remark) -> tuple[int, int]:
    where: Problem | object = remark.problem.where
    return getattr(where, "line", 0), getattr(where, "column", 0)
