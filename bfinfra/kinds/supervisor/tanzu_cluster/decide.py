"""The steps of a Tanzu cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.supervisor.base import fit, fixed, offers, upgrade
from bfinfra.kinds.supervisor.base.cluster_steps import Create, Drop, Hop, Roll, Update, Wait
from bfinfra.kinds.supervisor.tanzu_cluster import declared, forms
from bfinfra.kinds.supervisor.tanzu_cluster import manifest as form
from bfinfra.kinds.supervisor.tanzu_cluster.facts import TanzuClusterFacts
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Authority, Fields
from bfinfra.kinds.supervisor.tanzu_cluster.spec import FromRegistry, Spec
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.model import compare
from bfinfra.model.awaited import until
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.step import Step

ROLLING = ("version", "vm_class", "storage_class", "volumes", "trust")


def create(name: str, spec: Spec, context: PlanContext) -> Create:
    """The step that creates it."""
    _check_declared(name, spec, context)
    authorities = _check(spec, context)
    release = _release(spec, spec.version, context)
    return Create(
        name=name,
        namespace=spec.namespace,
        home=context.needs["namespace"].get("endpoint"),
        changes=differences(None, spec.applied()),
        manifest=_committed(name, spec, authorities, release, context),
    )


def update(name: str, spec: Spec, state: State, context: PlanContext) -> Sequence[Step]:
    """All differences, in one step. A version several minor versions away takes a step for each. An adoption
    writes the mark alone.
    """
    if compare.adopting(state.mark):
        return (_adopted(name, spec, state, context),)
    authorities = authorities_of(spec, context)
    want, now = form.wanted(spec, authorities), state.view(spec)
    if upgrade.matches(str(now.get("version")), spec.version):
        now["version"] = spec.version
    applied = state.applied
    want = _keep_unread_authorities(spec, authorities, want, now, applied)
    drift = differences(_within(now, {**applied, **want}), want)
    changes = _once(compare.changes(spec, state.mark, drift))
    if not changes:
        return ()
    way = (
        ()
        if now.get("version") == spec.version
        else upgrade.way(state.version, spec.version, _offer(spec, context).versions)
    )
    _check_declared(name, spec, context)
    moving = {change.field for change in differences(now, want)}
    _check_changes(spec, state, {change.field for change in changes if change.field in moving}, context)
    write = _Writing(name, spec, state, authorities, context)
    if gone := sorted(
        (now.get("workers") or {}).keys() & (applied.get("workers") or {}).keys() - spec.workers.keys()
    ):
        drop = write.step(
            Drop, str(now.get("version")) if way else spec.version, changes, pools=", ".join(gone)
        )
        return (drop, *_upgrade(write, way, now, changes)) if way else (drop,)
    if way:
        return _upgrade(write, way, now, changes)
    step = Roll if any(_rolls(change.field) for change in drift) else Update
    return (write.step(step, spec.version, changes),)


def _adopted(name: str, spec: Spec, state: State, context: PlanContext) -> Update:
    """The step that writes the mark, and nothing else."""
    metadata = {"name": name, "namespace": state.namespace}
    found = {"apiVersion": state.api, "kind": state.form.kind, "metadata": metadata}
    return Update(
        name=name,
        namespace=state.namespace,
        home=state.home,
        manifest=mark_only(found, context.mark.committed(spec.applied()), state.uid),
        changes=compare.changes(spec, state.mark),
    )


def _keep_unread_authorities(
    spec: Spec, authorities: Mapping[str, Authority], want: dict[str, Any], now: Fields, applied: Fields
) -> dict[str, Any]:
    """The desired fields. An authority whose file doesn't exist yet keeps its live value, if the file was
    applied under that name.
    """
    live, noted = now.get("trust") or {}, applied.get("trust") or {}
    kept = {
        name: live[name]
        for name, file in spec.files().items()
        if isinstance(authorities[name], Unknown) and name in live and noted.get(name) == file.text
    }
    return {**want, "trust": {**want["trust"], **kept}} if kept else want


def _once(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes without the source of an authority, if the authority itself is among them."""
    fields = {change.field for change in changes}
    return tuple(
        change
        for change in changes
        if not change.field.startswith("trust.")
        or change.field.removesuffix(".registry") not in fields - {change.field}
    )


def _rolls(field: str) -> bool:
    """Return whether a change of the field replaces nodes. Pools have any names."""
    parts = field.split(".")
    return any(part in ROLLING for part in (parts[2:] if parts[0] == "workers" else parts))


def authorities_of(spec: Spec, context: PlanContext) -> dict[str, Authority]:
    """Name → PEM of the authorities that the spec names. Unknown for a registry that doesn't report its
    authority yet, and for a file that doesn't exist yet.
    """
    facts: TanzuClusterFacts = context.facts or TanzuClusterFacts()
    found: dict[str, Authority] = {}
    for name, source in spec.trust.items():
        if isinstance(source, FromRegistry):
            found[name] = context.needs[f"trust.{name}.registry"].get("authority")
            continue
        pem = facts.authorities.get(str(source.path), "!it was not read")
        if not pem:
            found[name] = until(source)
            continue
        if pem.startswith("!"):
            raise Refusal(
                f"{source.path} is not a certificate authority",
                field=f"trust.{name}",
                why=pem[1:],
                next="give a PEM file",
            )
        found[name] = pem
    return found


def _committed(
    name: str, spec: Spec, authorities: Mapping[str, Authority], release: str, context: PlanContext
) -> Fields | Unknown:
    """The object to send, with its mark."""
    if (
        later := next((each for each in authorities.values() if isinstance(each, Unknown)), None)
    ) is not None:
        return later
    known = {name: pem for name, pem in authorities.items() if isinstance(pem, str)}
    return marked(
        forms.manifest(name, spec.namespace, spec, known, release), context.mark.committed(spec.applied())
    )


class _Writing:
    """Steps that write a cluster, each with all fields of the spec but with a version of its own."""

    def __init__(
        self, name: str, spec: Spec, state: State, authorities: Mapping[str, Authority], context: PlanContext
    ) -> None:
        self.name, self.spec, self.state, self.authorities, self.context = (
            name,
            spec,
            state,
            authorities,
            context,
        )

    def step(self, what: type[Update], aim: str, changes: Sequence[Change], **more: object) -> Update:
        """A step that leaves the cluster at this version, and notes as applied only what it has then."""
        spec = self.spec.model_copy(update={"version": aim})
        stays = not FORMS[spec.api].short and upgrade.matches(self.state.version, aim)
        release = self.state.version if stays else _release(spec, aim, self.context)
        committed = _committed(self.name, spec, self.authorities, release, self.context)
        return what(
            name=self.name,
            namespace=spec.namespace,
            home=self.state.home,
            manifest=committed,
            changes=tuple(changes),
            **more,
        )


def _upgrade(write: _Writing, way: Sequence[str], now: Fields, changes: Sequence[Change]) -> Sequence[Step]:
    """The steps to the desired version, over one release of each minor version between. First waits for an
    update that is in progress.
    """
    spec, state = write.spec, write.state
    between = [version.partition("+")[0] if FORMS[spec.api].short else version for version in way[:-1]]
    steps: list[Step] = []
    if state.phase != "failed" and state.missing(_count(now)):
        steps.append(Wait(name=write.name, version=state.version))
    last, others = state.version, [change for change in changes if change.field != "version"]
    for version in between:
        steps.append(write.step(Hop, version, [Change("version", last, version), *others], version=version))
        last, others = version, []
    return (*steps, write.step(Roll, spec.version, [Change("version", last, spec.version), *others]))


def _count(now: Fields) -> int:
    return sum(
        int(nodes.get("count") or 0)
        for nodes in (now.get("control_plane") or {}, *(now.get("workers") or {}).values())
    )


def _release(spec: Spec, version: str, context: PlanContext) -> str:
    """The version to send: as written if the API accepts a prefix, else the newest release that
    it matches.
    """
    if FORMS[spec.api].short:
        return version
    offer = _offer(spec, context)
    found = upgrade.newest(offer.versions or (), version)
    if not found and "+" not in version.replace("---", "+"):
        raise Refusal(
            (
                f"{spec.api} needs the full name of a release, and the supervisor doesn't show which one "
                f"{version} is"
            ),
            field="version",
            why=offer.unseen,
            next="write it as kubectl get tanzukubernetesreleases shows it",
        )
    return found or version


def _offer(spec: Spec, context: PlanContext) -> offers.Offer:
    facts: TanzuClusterFacts = context.facts or TanzuClusterFacts()
    return facts.offers.get(spec.namespace, offers.Offer())


def _check_changes(spec: Spec, state: State, fields: set[str], context: PlanContext) -> None:
    """Raises Refusal for a change that a cluster can't make."""
    if FORMS[spec.api].kind != state.form.kind:
        raise Refusal(
            f"the cluster was created as a {state.form.kind}",
            field="api",
            why=f"it can't become a {FORMS[spec.api].kind}",
            next=f"write api: {state.api}, or make another cluster, move the work, delete this one",
        )
    before = (state.view(spec).get("control_plane") or {}).get("count") or 0
    fixed.check(fields, before, spec.control_plane.count)
    if fields:
        _check(spec, context)


def _check_declared(name: str, spec: Spec, context: PlanContext) -> None:
    facts: TanzuClusterFacts = context.facts or TanzuClusterFacts()
    declared.check(spec, facts.undeclared.get(name))


def _check(spec: Spec, context: PlanContext) -> dict[str, Authority]:
    facts: TanzuClusterFacts = context.facts or TanzuClusterFacts()
    offers.check(spec, _offer(spec, context), context.needs["namespace"].spec)
    fit.check(spec, context, facts.environment)
    return authorities_of(spec, context)


def _within(now: Fields, shape: Fields) -> dict[str, Any]:
    """The part of `now` with the keys of `shape`. Drops what the supervisor filled in by itself."""
    return {
        name: _within(value, shape[name])
        if isinstance(value, Mapping) and isinstance(shape[name], Mapping)
        else value
        for name, value in now.items()
        if name in shape
    }
