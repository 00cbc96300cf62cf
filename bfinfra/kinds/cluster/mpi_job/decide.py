"""The steps of an MPI job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.cluster.base.field_diffs import field_diffs
from bfinfra.kinds.cluster.base.pods import pull_secret
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster.mpi_job.manifest import digest, field_of, manifest
from bfinfra.kinds.cluster.mpi_job.spec import Spec
from bfinfra.kinds.cluster.mpi_operator.definition import GROUP, NAME
from bfinfra.kinds.cluster_locator import WHOLE, real_name
from bfinfra.model import compare, resource
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Disruption, Step

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The job as the cluster reports it. `phase`: Created, Running, Restarting, Succeeded, Failed, Suspended
    or ""; `why`: its message.
    """

    cluster: Annotated[str, Ref(*WHOLE)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    operator: Annotated[str, Ref("mpi_operator")] | None = None
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    name: str
    home: Endpoint
    version: str
    digest: str
    uid: str = ""
    spec: Mapping[str, Any]
    phase: str
    why: str = ""
    held_up: str = ""
    """The pod that finds no node or can't start, and why."""
    ran: bool = True
    """Whether any of its containers has ever started; True if that isn't known."""


@dataclass(frozen=True, kw_only=True)
class _Job(Step):
    what: str
    namespace: str
    cluster: str


@dataclass(frozen=True, kw_only=True)
class Create(_Job):
    """start MPI job {what} in namespace {namespace} of {cluster}"""

    rights = (may("create", NAME, "namespace"),)

    home: Endpoint | Unknown
    manifest: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class WriteRecord(_Job):
    """note on MPI job {what} what was applied"""

    rights = (may("patch", NAME, "namespace"),)

    home: Endpoint
    manifest: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Delete(_Job):
    """delete MPI job {what} from namespace {namespace} of {cluster}"""

    destructive = True
    rights: ClassVar[tuple[Right, ...]] = (may("delete", NAME, "namespace"),)
    uses = (Use.DESTROY,)
    home: Endpoint
    version: str


@dataclass(frozen=True, kw_only=True)
class Clear(Delete):
    """clear away MPI job {what} in namespace {namespace}, which has ended"""

    destructive = False
    uses = (Use.APPLY,)
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Withdraw(Clear):
    """take back MPI job {what} in namespace {namespace}, of which nothing ran yet, to make it anew"""


@dataclass(frozen=True, kw_only=True)
class Replace(Delete):
    """stop and delete MPI job {what} in namespace {namespace}, to make it anew"""

    uses = (Use.APPLY,)
    disruption = Disruption.REPLACE
    why = "a running MPI job can't be changed"
    waits_ready = True


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """Starts it, starts it again, or deletes it. A running job can't change, except in what apply
    waits for.
    """
    if spec is None:
        return () if state is None or state.going else (_gone(Delete, name, state),)
    namespace, version = place(spec, context), version_of(spec, context)
    made = manifest(
        name,
        spec,
        version,
        namespace,
        pull_secret(context.needs.get("registry_credential"), spec.cluster, namespace, spec.namespace),
    )
    mark, wanted = context.mark.committed(spec.applied()), digest(made)
    adopting = compare.adopting(state.mark if state else None)
    drift = () if adopting else _drift(state, made, wanted)
    found = compare.changes(spec, state.mark if state else None, drift)
    home = state.home if state and state.cluster == spec.cluster else context.needs["cluster"].get("endpoint")
    body = {**made, "metadata": {**made["metadata"], "annotations": {RENDERED: wanted}}}
    create = Create(
        what=name,
        namespace=namespace,
        cluster=spec.cluster,
        home=home,
        manifest=marked(body, mark),
        changes=found,
    )
    if state is None or state.going:
        return (create,)
    moved = differences(
        {"cluster": state.cluster, "namespace": state.namespace},
        {"cluster": spec.cluster, "namespace": namespace},
    )
    if not adopting and (moved or drift or state.digest not in ("", wanted)):
        step = Clear if state.phase in ENDED else Replace if state.ran else Withdraw
        return (_gone(step, name, state, (*moved, *found)), create)
    record = mark_only(made, mark, state.uid)
    if not adopting:  # which manifest it was made of isn't known of a job to adopt
        record["metadata"]["annotations"][RENDERED] = wanted
    note = WriteRecord(
        what=name, namespace=namespace, cluster=spec.cluster, home=state.home, manifest=record, changes=found
    )
    return (note,) if found or state.mark != mark else ()


def place(spec: Spec, context: PlanContext) -> str:
    """The namespace that a spec means."""
    return (
        real_name(spec.namespace, spec.cluster, context.needs.get("namespace"))
        if spec.namespace
        else "default"
    )


def version_of(spec: Spec, context: PlanContext) -> str:
    """The version of MPIJob. Raises Refusal if the operator serves another version, or another cluster."""
    need = context.needs.get("operator")
    if need is None or need.spec is None:
        return spec.api or "v2beta1"
    if need.spec.cluster != spec.cluster:
        raise Refusal(
            f"{need.key} runs in the cluster {need.spec.cluster}",
            field="operator",
            why=f"the job runs in {spec.cluster}",
            next="name the operator of that cluster",
        )
    if spec.api not in (None, need.spec.api):
        raise Refusal(
            f"{need.key} serves {GROUP}/{need.spec.api}",
            field="api",
            next="leave it out, or change the operator's",
        )
    return str(need.spec.api)


def _drift(state: State | None, made: Mapping[str, object], wanted: str) -> tuple[Change, ...]:
    """The differences between a live job and the manifest that it was created from."""
    if state is None or state.going or state.digest not in ("", wanted):
        return ()
    return tuple(
        Change(field_of(each.field), each.now, each.wanted) for each in field_diffs(made["spec"], state.spec)
    )


def _gone(step: type[Delete], name: str, state: State, changes: tuple[Change, ...] = ()) -> Delete:
    return step(
        what=name,
        namespace=state.namespace,
        cluster=state.cluster,
        home=state.home,
        version=state.version,
        changes=changes,
    )
