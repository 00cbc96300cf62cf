"""The steps of a device plug-in. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.cluster.bitfusion_device_plugin.check import check
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import (
    ASKING,
    CONFIG,
    RUNNING,
    WEBHOOK,
    Values,
    config_of,
    host_names,
    render,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    AUTHORITY,
    CERTIFICATE,
    NamespaceFacts,
    Place,
    State,
    Thing,
    Trust,
    place_of,
    record_place,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.steps import (
    Ask,
    Authorize,
    Certify,
    Clear,
    Commit,
    Remove,
    WriteRecord,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.takeover import (
    check_existing,
    foreign,
    must_wait,
    trusting_both,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.writes import changes_of, marking, step_for, writes
from bfinfra.kinds.cluster_locator import real_name
from bfinfra.model import compare
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.authority import Certificate

ON_THE_WAY = "(created by this apply)"
KNOWS_SECCOMP = 19
"""The first minor version of Kubernetes with the pod field `seccompProfile`."""


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: record, certificates, objects, pods, then the webhook configurations. A removal takes the
    webhook configurations first.
    """
    if spec is None:
        return () if state is None else tuple(_removal(state, Remove, tuple(state.things)))
    namespace_facts: NamespaceFacts = context.facts[name]
    check(spec, context, namespace_facts)
    if state is not None and state.cluster == spec.cluster:
        values = values_of(spec, context, state.trust)
        check_existing(state, values)
        if compare.adopting(state.mark):
            return tuple(_adopted(record_place(values.namespace, name), spec, state, context))
    if state is not None and state.cluster != spec.cluster:
        moved = differences({"cluster": state.cluster}, {"cluster": spec.cluster})
        return (
            *_removal(state, Clear, tuple(state.things), moved),
            *_here(name, spec, None, context, namespace_facts),
        )
    return tuple(_here(name, spec, state, context, namespace_facts))


def _adopted(record: Place, spec: Spec, state: State, context: PlanContext) -> Iterator[Step]:
    """The steps that mark the objects that are there, and nothing else. The record names what it named, and
    them.
    """
    noted = state.records.get(record)
    places = tuple(dict.fromkeys((*(noted.places if noted else ()), *state.things)))
    changes, mark = compare.changes(spec, state.mark), context.mark
    if noted is None or noted.going:
        yield WriteRecord(
            record=record, places=places, existing=False, home=state.home, mark=mark, changes=changes
        )
    yield from marking(state, mark, changes)
    committed = mark.committed(spec.applied())
    yield Commit(record=record, places=places, home=state.home, mark=committed, changes=changes)


def values_of(spec: Spec, context: PlanContext, trust: Trust) -> Values:
    """The values for the objects, as far as they are known."""
    needs = context.needs
    spaces = {
        each.namespace: real_name(each.namespace, spec.cluster, needs.get(f"quotas.{n}.namespace"))
        for n, each in enumerate(spec.quotas)
    }
    spaces |= {
        each: real_name(each, spec.cluster, needs.get(f"namespaces.{n}"))
        for n, each in enumerate(spec.namespaces)
    }
    credential = needs["registry_credential"].spec if spec.registry_credential else None
    return Values(
        real_name(spec.namespace, spec.cluster, needs.get("namespace")),
        real_name(spec.plugin_namespace, spec.cluster, needs.get("plugin_namespace")),
        spaces,
        (credential.secret or spec.registry_credential or "") if credential else "",
        certificate=trust.serving.fingerprint if trust.serving else "",
        bundle=trust.bundle,
        built={what: needs[f"images.built.{what}"].spec.image for what in spec.images.built},
        seccomp=_knows_seccomp(needs["cluster"]),
    )


def _knows_seccomp(cluster: ResolvedRef) -> bool:
    """Return whether pods have the field `seccompProfile`, by the cluster's version, live or in the file;
    True if neither is known.
    """
    version = str(getattr(cluster.state, "version", "") or getattr(cluster.spec, "version", ""))
    found = re.match(r"v?1\.(\d+)", version)
    return found is None or int(found[1]) >= KNOWS_SECCOMP


def _noted(spec: Spec, values: Values, state: State | None) -> str:
    """The digest to note on the webhook's pods of what they read at their start. Pods of an earlier bfinfra,
    which have no digest, keep none as long as nothing that they read has changed.
    """
    place = Place("apps/v1", "Deployment", values.namespace, WEBHOOK)
    running = state.things.get(place) if state else None
    if state is None or running is None or CONFIG in _template_notes(running):
        return config_of(spec, values)
    read = [each for each in render(spec, values) if each.manifest["kind"] == "ConfigMap"]
    things = [state.things.get(place_of(each.manifest)) for each in read]
    same = all(not changes_of(each, state) for each in read) and all(
        thing is not None and thing.written <= running.written for thing in things
    )
    return "" if same and running.digest == _digest(WEBHOOK, spec, values) else config_of(spec, values)


def _digest(name: str, spec: Spec, values: Values) -> str:
    return next(
        each.digest
        for each in render(spec, values)
        if each.manifest["metadata"]["name"] == name and each.manifest["kind"] in RUNNING
    )


def _template_notes(thing: Thing) -> Mapping[str, str]:
    template = (thing.live.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("annotations") or {}


def _here(
    name: str, spec: Spec, state: State | None, context: PlanContext, namespace_facts: NamespaceFacts
) -> Iterator[Step]:
    trust = state.trust if state else Trust()
    values = values_of(spec, context, trust)
    values = replace(values, config=_noted(spec, values, state))
    certificates = tuple(_certificates(spec, values, state, context, namespace_facts))
    objects = render(spec, _expecting(values, certificates))
    home = state.home if state else context.needs["cluster"].get("endpoint")
    record = record_place(values.namespace, name)
    secrets = (
        Place("v1", "Secret", values.namespace, AUTHORITY),
        Place("v1", "Secret", values.namespace, CERTIFICATE),
    )
    planned = (*secrets, *(place_of(each.manifest) for each in objects))
    existing = tuple(state.things) if state else ()
    changes = compare.changes(spec, state.mark if state else None)
    noted = state.records.get(record) if state else None
    every = tuple(dict.fromkeys((*planned, *existing)))
    if noted is None or noted.going or not {*every} <= {*noted.places}:
        yield WriteRecord(
            record=record,
            places=every,
            existing=noted is not None and not noted.going,
            home=home,
            mark=context.mark,
            changes=changes,
        )
    yield from certificates
    yield from writes(objects, state, context, home, must_wait(state, values))
    stale = tuple(place for place in existing if place not in planned)
    others = tuple(place for place in (state.records if state else ()) if place != record)
    if state is not None and (stale or others):
        yield from _removal(state, Remove, stale, records=others)
    mark = context.mark.committed(spec.applied())
    if (
        noted is None
        or noted.mark is None
        or noted.mark.applied != mark.applied
        or {*noted.places} != {*planned}
    ):
        yield Commit(record=record, places=planned, home=home, mark=mark, changes=changes)


def _certificates(
    spec: Spec, values: Values, state: State | None, context: PlanContext, namespace_facts: NamespaceFacts
) -> Iterator[Step]:
    """The steps for certificates: new ones if they are missing, damaged, about to expire, or for another
    name. A new authority is trusted before it signs.
    """
    trust, wanted = (state.trust if state else Trust()), spec.certificates
    soon = namespace_facts.now + timedelta(days=wanted.renew_before)
    at: dict[str, Any] = {
        "namespace": values.namespace,
        "home": state.home if state else context.needs["cluster"].get("endpoint"),
        "mark": context.mark,
    }
    newest = trust.authorities[0] if trust.authorities else None
    things = {
        each: state.things.get(Place("v1", "Secret", values.namespace, each)) if state else None
        for each in (AUTHORITY, CERTIFICATE)
    }
    at["existing"] = tuple(each for each, thing in things.items() if thing is not None)
    marks = {each: thing is not None and thing.mark is not None for each, thing in things.items()}
    if newest is None or not trust.whole or newest.not_after <= soon or not marks[AUTHORITY]:
        yield Authorize(
            days=wanted.authority_days,
            changes=(Change("authority", _ends(newest), f"a new one, for {wanted.authority_days} days"),),
            **at,
        )
        newest = None
    names, serving = host_names(values.namespace), trust.serving
    good = (
        serving is not None
        and newest is not None
        and trust.fits
        and serving.not_after > soon
        and serving.names == names
        and marks[CERTIFICATE]
    )
    if not good or newest is None or trust.signer != newest.fingerprint:
        if state is not None and foreign(state, trust):
            yield from _foreign_first(
                state, spec, values if newest else replace(values, bundle=ON_THE_WAY), context
            )
        elif state is not None and newest is not None:
            yield from _trusted_first(state, trust, spec, values, context)
        yield Certify(
            names=names,
            days=wanted.days,
            changes=(Change("certificate", _ends(serving), f"a new one, for {wanted.days} days"),),
            **at,
        )


def _expecting(values: Values, certificates: Sequence[Step]) -> Values:
    """The values with Unknown for certificates that this apply creates first."""
    made = {type(step) for step in certificates}
    return replace(
        values,
        certificate=ON_THE_WAY if Certify in made else values.certificate,
        bundle=ON_THE_WAY if Authorize in made else values.bundle,
    )


def _trusted_first(
    state: State, trust: Trust, spec: Spec, values: Values, context: PlanContext
) -> Iterator[Step]:
    """If the API server asks the webhook already, it trusts the new authority beside the old one before the
    webhook shows a certificate of the new one.
    """
    objects = [
        each
        for each in render(spec, values)
        if each.manifest["kind"] in ASKING and place_of(each.manifest) in state.things
    ]
    if trust.serving is not None:
        yield from step_for(Ask, objects, state, context, state.home)


def _foreign_first(state: State, spec: Spec, values: Values, context: PlanContext) -> Iterator[Step]:
    """If the API server asks another installation's webhook, that one's authority stays trusted until this
    site's pods have taken over. Meanwhile the failure policy is Ignore, so that no pod is refused.
    """
    loose = spec.model_copy(update={"failure_policy": "Ignore"})
    existing = [
        each
        for each in render(loose, values)
        if each.manifest["kind"] in ASKING and place_of(each.manifest) in state.things
    ]
    yield from step_for(
        Ask, [trusting_both(each, state, values.bundle) for each in existing], state, context, state.home
    )


def _ends(certificate: Certificate | None) -> str | None:
    return f"ends {certificate.not_after:%Y-%m-%d}" if certificate else None


def _removal(
    state: State,
    step: type[Remove],
    places: Sequence[Place],
    changes: tuple[Change, ...] = (),
    records: Sequence[Place] | None = None,
) -> Iterator[Remove]:
    """The removal: webhook configurations first, then pods, then the rest, and the records last, as they list
    everything.
    """
    order = {kind_: number for number, kind_ in enumerate((*reversed(ASKING), *RUNNING))}
    known = tuple(state.records) if records is None else tuple(records)
    going = {
        *(place for place, thing in state.things.items() if thing.going),
        *(place for place, record in state.records.items() if record.going),
    }
    listed = [*sorted(places, key=lambda place: order.get(place.kind, len(order))), *known]
    if left := tuple(place for place in listed if place not in going):
        own = changes or tuple(Change(str(place), "there", None) for place in left)
        yield step(what=", ".join(map(str, left)), home=state.home, places=left, changes=own)
