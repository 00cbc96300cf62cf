"""The steps of a cluster made by kubeadm. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.kinds.machine.base import adopted, check_owner, record_path, while_away, whole_text
from bfinfra.kinds.machine.kubeadm_cluster.spec import Spec
from bfinfra.kinds.machine.kubeadm_cluster.state import (
    NAME,
    KubeadmFacts,
    Node,
    State,
    token_id,
    with_swap,
    without_swap,
)
from bfinfra.kinds.machine.kubeadm_cluster.steps import (
    Forget,
    Init,
    Join,
    Leave,
    Network,
    Prepare,
    Reset,
    WriteRecord,
)
from bfinfra.kinds.sent_files import CACHE, sent_name
from bfinfra.model import compare
from bfinfra.model.awaited import held, until
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

NOTHING = Node(None)
FIXED = {
    "version": "upgrade it by hand with kubeadm upgrade, then write its version",
    "pod_cidr": "",
    "service_cidr": "",
    "control_plane": "",
    "endpoint": "",
}
"""Fields that kubeadm can't change on an existing cluster."""
ANEW = "destroy the cluster and create it again, or write what it was created with"


def steps(spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: prepare, initialise, apply the pod network, join, remove workers, record; each only on
    machines that need it.
    """
    if spec is None:
        return () if state is None else (_reset(state),)
    _check(spec, state, context)
    if state is not None and compare.adopting(state.mark):
        notes = {
            host: (_note(spec, host, done=node.initialised),)
            for host, node in state.on.items()
            if host in spec.hosts
        }
        return adopted(spec, state, context, record_path(NAME), notes)
    installed = (node.package for host, node in (state.on.items() if state else ()) if host in spec.hosts)
    return while_away(
        context, installed, lambda context: _while_cni_away(spec, state, context), Prepare, WriteRecord
    )


def _while_cni_away(spec: Spec, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps, also if the manifest of the pod network doesn't exist yet: then the manifest that the
    cluster notes counts as the desired one.
    """
    facts: KubeadmFacts = context.facts
    name = context.name
    if name not in facts.cni_away:
        return tuple(_steps(spec, state, context))
    known = state is not None and (state.cni or (state.endpoint is not None and state.nodes is None))
    cni = state.cni if state is not None and known else until(spec.cni)
    found = tuple(_steps(spec, state, replace(context, facts=replace(facts, cni={**facts.cni, name: cni}))))
    if any(isinstance(step, Network) or "cni" in (change.field for change in step.changes) for step in found):
        field, problem = facts.cni_away[name]
        raise held(problem, field, found)
    return found


def _check(spec: Spec, state: State | None, context: PlanContext) -> None:
    facts: KubeadmFacts = context.facts
    name, on = context.name, state.on if state else {}
    if not facts.cni.get(name) and name not in facts.cni_away:
        raise Refusal(
            f"the manifest {spec.cni.text} can't be read",
            field="cni",
            next="download it, or correct the path",
        )
    if spec.packages and not facts.packages.get(name) and name not in facts.away:
        raise Refusal(
            f"{', '.join(each.text for each in spec.packages)} can't be read",
            field="packages",
            next="download them, or correct the paths",
        )
    check_owner(on, spec.hosts, context.mark, "workers")
    ours = on.get(spec.control_plane, NOTHING).authority
    if others := [
        host
        for host, node in on.items()
        if host in spec.hosts and node.joined and not node.mark and node.authority != ours
    ]:
        raise Refusal(
            f"{', '.join(others)}: a node of another cluster",
            field="workers",
            why="its kubelet.conf names another authority",
            next="run kubeadm reset there, or name another machine",
        )
    applied = (state.mark.applied if state and state.mark else None) or {}
    written = spec.applied()
    for field, remedy in FIXED.items():
        if applied and applied.get(field) != written.get(field):
            raise Refusal(
                f"a cluster can't change its {field} from {applied.get(field)} to {written.get(field)}",
                field=field,
                next=remedy or ANEW,
            )


def _steps(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    facts: KubeadmFacts = context.facts
    name, mark = context.name, context.mark.committed(spec.applied())
    found = {host: facts.found.get(host, NOTHING) for host in spec.hosts}
    first, package, cni = found[spec.control_plane], facts.packages.get(name, ""), facts.cni[name]
    now, then = _now(spec, state, found, first), {host: _then(spec, package) for host in spec.hosts}
    wanting = [host for host in spec.hosts if now[host] != then[host]]
    changes = _changed(spec, state, now, then, cni)
    at = {"changes": changes}
    if unready := [
        host for host in wanting if {**now[host], "node": True} != then[host] or found[host].mark is None
    ]:
        yield Prepare(
            names=", ".join(unready),
            machines=facts.of(unready),
            todo={host: _prepare(spec, host, found[host], package, mark) for host in unready},
            **at,
        )
    if not first.initialised:
        yield _init(spec, facts, first, mark, at)
    home: Any = (
        state.endpoint if state and state.endpoint else Unknown(Key("kubeadm_cluster", name), "endpoint")
    )
    if state is None or state.endpoint is None or (state.nodes is not None and state.cni != cni):
        yield Network(home=home, path=str(spec.cni.path), sha256=str(cni), mark=mark, **at)
    if joining := [host for host in spec.workers if not _belongs(found[host], state, first)]:
        yield Join(
            names=", ".join(joining),
            machines=facts.of(joining),
            home=home,
            token=token_id(mark.site, name),
            left=bool(state and state.token),
            **at,
            todo={host: {"reset": found[host].left, "words": _common_words(spec)} for host in joining},
        )
    elif state and state.token and state.endpoint:
        yield Forget(home=state.endpoint, token=token_id(mark.site, name), **at)
    if state and (
        leaving := [host for host, node in state.on.items() if host not in spec.hosts and node.mark]
    ):
        yield _leave(spec, state, leaving, at)
    if noting := [host for host in spec.hosts if found[host].mark != mark]:
        yield WriteRecord(
            names=", ".join(noting),
            machines=facts.of(noting),
            todo={host: {"mark_sealed": f"{mark.encode()}\n{_note(spec, host)}"} for host in noting},
            **at,
        )


def _changed(
    spec: Spec, state: State | None, now: Mapping[str, object], then: Mapping[str, object], cni: str | Unknown
) -> tuple[Change, ...]:
    """The differences on the machines and in the cluster, for people."""
    if state is None:
        return differences(None, spec.applied())
    if state.mark is None:
        return compare.changes(spec, None)
    world = (
        *differences({"on": now}, {"on": then}),
        *differences(
            {"cni": (state.cni[:12] or None) if state.endpoint else None},
            {"cni": (cni[:12] or None) if isinstance(cni, str) else cni},
        ),
        *differences({"bootstrap_token": "left" if state.token else None}, {"bootstrap_token": None}),
    )
    return compare.changes(spec, state.mark, world)


def _init(spec: Spec, facts: KubeadmFacts, first: Node, mark: Mark, at: Mapping[str, Any]) -> Init:
    host = spec.control_plane
    done = f"{mark.pending.encode()}\n{_note(spec, host)}\ninit=done"
    return Init(
        names=host,
        machines=facts.of([host]),
        todo={host: {"reset": first.left, "words": _words_of_init(spec), "mark_done": done}},
        **at,
    )


def _now(
    spec: Spec, state: State | None, found: Mapping[str, Node], first: Node
) -> dict[str, dict[str, Any]]:
    """The fields of the machines, for people."""
    return {
        host: {
            "package": node.package[:12] or None if spec.packages else None,
            "swap": "on"
            if spec.swap == "off" and (node.swap or without_swap(node.fstab) != node.fstab)
            else None,
            "modules": list(node.modules) or None if spec.modules else None,
            "sysctl": node.sysctl.splitlines() or None if spec.sysctl else None,
            "node": (first.initialised if host == spec.control_plane else _belongs(node, state, first))
            or None,
        }
        for host, node in found.items()
    }


def _then(spec: Spec, package: str) -> dict[str, Any]:
    return {
        "package": package[:12] or None,
        "swap": None,
        "modules": list(spec.modules) or None,
        "sysctl": spec.sysctl_text().splitlines() or None,
        "node": True,
    }


def _belongs(node: Node, state: State | None, first: Node) -> bool:
    """Return whether it is a node of this cluster, also by the cluster's API if that answers."""
    known = state is None or state.nodes is None or node.name in state.nodes
    return node.joined and bool(first.authority) and node.authority == first.authority and known


def _note(spec: Spec, host: str, *, done: bool = True) -> str:
    """The lines of its record besides the mark."""
    role = "control_plane" + "\ninit=done" * done if host == spec.control_plane else "worker"
    files = ",".join(f"{CACHE}/{sent_name(each.text)}" for each in spec.packages)
    return f"role={role}\nform={spec.form}\nfiles={files}"


def _prepare(spec: Spec, host: str, node: Node, package: str, mark: Mark) -> dict[str, Any]:
    fstab = without_swap(node.fstab) if spec.swap == "off" else node.fstab
    note = _note(spec, host, done=False)
    return {
        "mark_open": f"{mark.pending.encode()}\n{note}",
        "marked": node.mark is not None,
        "form": spec.form,
        "install": bool(spec.packages) and node.package != package,
        "packages": [str(each.path) for each in spec.packages],
        "package": "",
        "package_sha256": package,
        "program": "/usr/bin/kubeadm",
        "repository": {},
        "swap_off": spec.swap == "off" and node.swap,
        "fstab": whole_text(fstab, "/etc/fstab", host) if fstab != node.fstab else "",
        "modules": list(spec.modules),
        "sysctl": spec.sysctl_text(),
    }


def _words_of_init(spec: Spec) -> list[str]:
    words = [
        "--kubernetes-version",
        spec.version,
        "--pod-network-cidr",
        spec.pod_cidr,
        "--service-cidr",
        spec.service_cidr,
    ]
    return (
        words + (["--control-plane-endpoint", spec.endpoint] if spec.endpoint else []) + _common_words(spec)
    )


def _common_words(spec: Spec) -> list[str]:
    words = ["--cri-socket", spec.cri_socket] if spec.cri_socket else []
    return words + (
        ["--ignore-preflight-errors", ",".join(spec.ignore_preflight)] if spec.ignore_preflight else []
    )


def _leave(spec: Spec, state: State, leaving: Sequence[str], at: Mapping[str, Any]) -> Leave:
    minor = int(re.findall(r"\d+", spec.version)[1])
    local = "--delete-emptydir-data" if minor >= 20 else "--delete-local-data"
    there = state.machines.get(spec.control_plane) if state.endpoint else None
    return Leave(
        names=", ".join(leaving),
        machines={host: state.machines[host] for host in leaving},
        control_plane=there,
        nodes=[state.on[host].name for host in leaving],
        drain=["--ignore-daemonsets", local, "--force", "--timeout", f"{spec.drain}s"],
        todo={host: _undo(host, state.on[host]) for host in leaving},
        **at,
    )


def _undo(host: str, node: Node) -> dict[str, Any]:
    fstab = with_swap(node.fstab)
    return {
        "form": node.noted.get("form", ""),
        "files": [path for path in node.noted.get("files", "").split(",") if path],
        "fstab": whole_text(fstab, "/etc/fstab", host) if fstab != node.fstab else "",
    }


def _reset(state: State) -> Reset:
    """The reset of workers and control plane together. Nothing of the cluster stays, so no worker is drained
    first.
    """
    return Reset(
        names=", ".join(state.on),
        machines=state.machines,
        todo={host: _undo(host, node) for host, node in state.on.items()},
    )
