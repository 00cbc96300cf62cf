"""Checks indentation: fields of a pod inside a container, and YAML that can't be read because of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bfinfra.lint.pods import Pod
from bfinfra.model.errors import Place, Problem
from bfinfra.model.remark import Remark, error

POD = frozenset(
    {
        "volumes",
        "containers",
        "initContainers",
        "restartPolicy",
        "nodeSelector",
        "nodeName",
        "serviceAccountName",
        "serviceAccount",
        "imagePullSecrets",
        "hostNetwork",
        "tolerations",
        "affinity",
        "terminationGracePeriodSeconds",
        "activeDeadlineSeconds",
        "priorityClassName",
        "runtimeClassName",
    }
)
"""Fields of a pod's spec that containers don't have."""
CONTAINER = frozenset(
    {
        "command",
        "args",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "volumeMounts",
        "ports",
        "livenessProbe",
        "readinessProbe",
    }
)
"""Fields of a container that a pod's spec doesn't have."""
KEY = re.compile(r"( *)([A-Za-z]+):")


def rules(pod: Pod) -> Iterator[Remark]:
    """Fields that are one level too deep or too high."""
    for container in (*pod.containers, *pod.init_containers):
        for name, entry in container.fields.items():
            if name in POD:
                column = _column(pod)
                yield error(
                    f"{name} is in the container {container.name}",
                    entry.at,
                    "it is a field of the pod's spec, and the API server doesn't know it there",
                    f"indent it with {column - 1} blanks, as containers" if column else "move it to spec",
                )
    for name, entry in pod.spec.items():
        if name in CONTAINER:
            yield error(
                f"{name} is in the pod's spec",
                entry.at,
                "it is a field of a container",
                "indent it as the name of its container",
            )


def explained(problem: Problem, text: str) -> Problem:
    """A problem of the YAML itself. If a field of the pod is indented as an item of its containers, it says
    so.
    """
    where = problem.where
    lines = text.splitlines()
    if not isinstance(where, Place) or where.line > len(lines):
        return problem
    found = KEY.match(lines[where.line - 1])
    outer = next(
        (
            above
            for line in reversed(lines[: where.line - 1])
            if (above := KEY.match(line)) and found and _holds(above, found)
        ),
        None,
    )
    if not found or not outer or found[2] not in POD:
        return problem
    indent, wanted = len(found[1]), len(outer[1])
    at = where._replace(column=indent + 1)
    return replace(
        problem,
        what=f"{found[2]} is indented with {indent} blanks, as the items of {outer[2]}",
        where=at,
        why=f"so it is part of their list, which can't contain a key ({problem.what})",
        next=f"indent it with {wanted} blanks, as {outer[2]}, and what follows with it",
    )


def _holds(above: re.Match[str], inner: re.Match[str]) -> bool:
    return above[2] in ("containers", "initContainers") and len(above[1]) <= len(inner[1])


def _column(pod: Pod) -> int:
    return pod.spec["containers"].at.column if "containers" in pod.spec else 0
