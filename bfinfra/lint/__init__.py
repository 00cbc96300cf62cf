"""Checks user pods as the Bitfusion device plug-in's webhook will read them: what it will refuse, skip or
break. Pure; contacts no cluster.
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
    `namespaces`: the only ones that its webhook sees, if limited.
    """

    clients: tuple[Client, ...]
    beside: tuple[str, ...]
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The plug-in's release, and its TOTAL_GPU_MEMORY in MB, 0 if unknown.

    `namespace`: the pods' namespace, "" for the one in each manifest. `installed`: the plug-in that will see
    them, if known.
    """

    version: Version = NEWEST
    total_gpu_memory: int = 0
    namespace: str = ""
    installed: Installed | None = None


def lint(file: Path, text: str, asked: Asked) -> tuple[Remark, ...]:
    """Return the mistakes in a file of manifests, in the order of its lines. Pods that don't request
    Bitfusion's GPUs are skipped.
    """
    if len(text.encode(errors="replace")) > LARGEST:
        return (
            error(
                f"it is larger than {LARGEST >> 20} MiB", str(file), next="put the pods into their own file"
            ),
        )
    try:
        roots, problems = compose_all(file, text)
    except Unreadable as broken:
        return (Remark("error", indent.explained(broken.problem, text)),)
    found = [Remark("error", problem) for problem in problems]
    found_pods = [pod for root in roots for pod in pods(root)]
    if not found_pods:
        found.append(
            error(
                "it contains no pod and no workload",
                str(file),
                next="give a Pod, Deployment, StatefulSet, DaemonSet, Job or CronJob",
            )
        )
    return tuple(sorted([*found, *(remark for pod in found_pods for remark in _of(pod, asked))], key=_place))


def lint_pods(file: Path, text: str, asked: Asked) -> tuple[Remark, ...]:
    """The same for the pods only: unreadable files and files without pods are not reported."""
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
        return notes.Hidden("it skips system namespaces, its own and the webhook's", "use your own namespace")
    if installed.namespaces and namespace not in installed.namespaces:
        return notes.Hidden(
            f"it sees only {', '.join(installed.namespaces)}", "add it to the plug-in's namespaces"
        )
    return notes.Hidden()


def _place(remark: Remark) -> tuple[int, int]:
    where: Problem | object = remark.problem.where
    return getattr(where, "line", 0), getattr(where, "column", 0)
