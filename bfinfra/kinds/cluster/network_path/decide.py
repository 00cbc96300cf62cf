"""The steps of a path. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar

from bfinfra.backends.kubernetes.marks import marked
from bfinfra.kinds.cluster.base.pods import pull_secret
from bfinfra.kinds.cluster.network_path.policies import MOST, Judged
from bfinfra.kinds.cluster.network_path.probe import TRIED, Probed, manifest, name_of
from bfinfra.kinds.cluster.network_path.spec import Spec
from bfinfra.kinds.cluster_locator import CLUSTERS, real_name
from bfinfra.model import compare, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Step

JOBS = "jobs.batch"


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The path as the cluster reports it: its policies, and the probe's Job with its mark, if there is one.
    `foreign`: an unmanaged or other site's Job of its name.
    """

    cluster: Annotated[str, Ref(*CLUSTERS)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    home: Endpoint
    policies: Judged = field(default_factory=Judged)
    probe: Probed | None = None
    foreign: str = ""


@dataclass(frozen=True, kw_only=True)
class _Job(Step):
    what: str
    namespace: str
    cluster: str


@dataclass(frozen=True, kw_only=True)
class Try(_Job):
    """try the ways from a pod in namespace {namespace} of {cluster} (Job {what})"""

    rights = (may("create", JOBS, "probe"),)

    home: Endpoint | Unknown
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Delete(_Job):
    """delete the probe {what} from namespace {namespace} of {cluster}"""

    rights: ClassVar[tuple[Right, ...]] = (may("delete", JOBS, "probe"),)
    uses = (Use.DESTROY,)
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Clear(Delete):
    """clear away the probe {what} in namespace {namespace} of {cluster}"""

    uses = (Use.APPLY,)
    waits_ready = True


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """No steps if policies block the path. Else tries it if the site asks for a probe, and the last probe was
    different or failed before this run.
    """
    judged = (context.facts or {}).get(name)
    if spec is not None and judged is not None and judged.blocked:
        raise Refusal(
            f"pods in {spec.cluster} can't reach the Bitfusion servers",
            why=judged.blocked_by,
            next="allow this egress in a network policy",
        )
    existing = state.probe if state is not None else None
    if spec is None or spec.probe is None:
        return (
            (_away(Delete, state, existing, compare.changes(spec, state.mark) if spec else ()),)
            if state and existing and not existing.going
            else ()
        )
    if state is not None and state.foreign:
        raise Refusal(
            state.foreign,
            why="an object without the mark is never touched",
            next="delete it, or give this path another name",
        )
    return tuple(_probing(name, spec, state, existing, context))


def servers(spec: Spec, token: ResolvedRef | None) -> tuple[str, ...]:
    """The addresses to try, each once; Unknown as long as the token doesn't exist."""
    known = (host for host, _ in token.state.servers) if token is not None and token.state is not None else ()
    return tuple(dict.fromkeys((*known, *spec.addresses)))


def _probing(
    name: str, spec: Spec, state: State | None, existing: Probed | None, context: PlanContext
) -> Sequence[Step]:
    namespace, cluster = _namespace(spec, context), context.needs["cluster"]
    made = _manifest(name, spec, namespace, context)
    tried = made["metadata"]["annotations"][TRIED] if isinstance(made, Mapping) else ""
    applied = context.mark.committed(spec.applied())
    moved = (
        differences(
            {"cluster": state.cluster, "namespace": state.namespace},
            {"cluster": spec.cluster, "namespace": namespace},
        )
        if state and existing
        else ()
    )
    found = compare.changes(spec, state.mark if state else None, (*moved, *_differs(existing, made)))
    home = state.home if state and not moved else cluster.get("endpoint")
    again = Try(
        what=name_of(name),
        namespace=namespace,
        cluster=spec.cluster,
        home=home,
        changes=found,
        manifest=marked(made, applied) if isinstance(made, Mapping) else made,
    )
    if state is None or existing is None or existing.going:
        return (again,)
    if moved or found or (tried and existing.tried != tried):  # without the token nothing else is known
        return _away(Clear, state, existing, found), again
    return ()


def _differs(existing: Probed | None, made: Mapping[str, Any] | Unknown) -> tuple[Change, ...]:
    """Return how the last probe differs from the desired one; also the addresses that it did not reach,
    unless this run started it.
    """
    if existing is None or isinstance(made, Unknown):
        return ()
    command = made["spec"]["template"]["spec"]["containers"][0]["command"]
    paths = tuple(command[5:])
    if existing.paths != paths:
        return (Change("paths", list(existing.paths), list(paths)),)
    if existing.phase == "failed" and not existing.fresh:
        return (Change("probe", outcome(existing), f"all {len(paths)} ways reached"),)
    return ()


def outcome(failed: Probed) -> str:
    """Return the result of a failed probe, in words."""
    more = f" and {len(failed.unreached) - MOST} more" if len(failed.unreached) > MOST else ""
    return (
        f"{', '.join(failed.unreached[:MOST])}{more} not reached"
        if failed.unreached
        else failed.why or "it failed"
    )


def _manifest(name: str, spec: Spec, namespace: str, context: PlanContext) -> dict[str, Any] | Unknown:
    token = context.needs.get("token")
    if token is not None and token.state is None:
        return Unknown(token.key, "servers")
    assert spec.probe is not None
    pull = pull_secret(
        context.needs.get("probe.registry_credential"),
        spec.cluster,
        namespace,
        spec.namespace,
        "probe.registry_credential",
    )
    paths = [f"{server}:{port}" for server in servers(spec, token) for port in spec.ports]
    return manifest(name, namespace, context.mark.site, spec.pods, spec.probe, paths, pull)


def _namespace(spec: Spec, context: PlanContext) -> str:
    """The namespace that a spec means."""
    key = context.needs["cluster"].key
    if key.kind == "supervisor_namespace":
        return key.name
    return (
        real_name(spec.namespace, spec.cluster, context.needs.get("namespace"))
        if spec.namespace
        else "default"
    )


def _away(step: type[Delete], state: State, existing: Probed, changes: tuple[Change, ...]) -> Delete:
    return step(
        what=existing.job, namespace=state.namespace, cluster=state.cluster, home=state.home, changes=changes
    )
