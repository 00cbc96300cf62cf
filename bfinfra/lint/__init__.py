"""User pods, read as the Bitfusion device plug-in's webhook will read them: what it will refuse, skip or spoil. Pure; asks no cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bfinfra.lint import commands, containers, indent, notes, resources
from bfinfra.lint.pods import Pod, pods
from bfinfra.model.device_plugin import NEWEST, RELEASES, Version
from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.remark import Remark, error
from bfinfra.spec.yaml import LARGEST, Unreadable, compose_all

__all__ = ["Asked", "lint"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The plug-in's release, and its TOTAL_GPU_MEMORY in MB, 0 where it isn't known."""

    version: Version = NEWEST
    total_gpu_memory: int = 0


def lint(file: Path, text: str, asked: Asked) -> tuple[Remark, ...]:
    """What is wrong with a file of manifests, in the order of its lines. Pods that don't ask for Bitfusion's GPUs are none of its business."""
    if len(text.encode(errors="replace")) > LARGEST:
        return (error(f"it is larger than {LARGEST >> 20} MiB", str(file), next="give the pods in a file of their own"),)
    try:
        roots, problems = compose_all(file, text)
    except Unreadable as broken:
        return (Remark("error", indent.explained(broken.problem, text)),)
    found = [Remark("error", problem) for problem in problems]
    seen = [pod for root in roots for pod in pods(root)]
    if not seen:
        found.append(error("it holds no pod, and nothing that makes pods", str(file), next="give a Pod, Deployment, StatefulSet, DaemonSet, Job or CronJob"))
    return tuple(sorted([*found, *(remark for pod in seen for remark in _of(pod, asked))], key=_place))


def _of(pod: Pod, asked: Asked) -> Iterator[Remark]:
    if pod.concerned:
        release = RELEASES[asked.version]
        yield from notes.rules(pod, release)
        yield from containers.rules(pod, release)
        yield from resources.rules(pod, release, asked.total_gpu_memory)
        yield from commands.rules(pod, release)
        yield from indent.rules(pod)


def _place(remark: Remark) -> tuple[int, int]:
    where: Problem | object = remark.problem.where
    return getattr(where, "line", 0), getattr(where, "column", 0)
