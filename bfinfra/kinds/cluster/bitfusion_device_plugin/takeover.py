"""Takes over another installation, such as upstream's `make deploy`: what can't change in place, and how
trust moves without a refused pod. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bfinfra.kinds.cluster.base.pods import Object
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import ASKING, NAMES, WEBHOOK, Rendered, Values
from bfinfra.kinds.cluster.bitfusion_device_plugin.readiness import webhook_late
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    CERTIFICATE,
    Place,
    State,
    Thing,
    Trust,
    place_of,
)
from bfinfra.model.compare import Change
from bfinfra.model.errors import Refusal

FIXED = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec", "selector"),
    "Deployment": ("spec", "selector"),
}
"""Fields that an API server does not allow to change."""


def check_existing(state: State | None, values: Values) -> None:
    """Raises Refusal if an unmarked object can't be taken over. Names every object in the way."""
    strange = {place: thing for place, thing in state.things.items() if thing.mark is None} if state else {}
    found = [why for place, thing in strange.items() for why in _obstacles(place, thing, values)]
    if found:
        raise Refusal(
            "the existing installation can't be taken over",
            why="; ".join(found),
            next="change these objects, or remove that installation; nothing was written",
        )


def _obstacles(place: Place, thing: Thing, values: Values) -> Iterator[str]:
    if place.kind in ASKING:
        own = NAMES[place.kind][1]
        for hook in thing.live.get("webhooks") or ():
            service = (hook.get("clientConfig") or {}).get("service") or {}
            if hook.get("name") != own:
                yield f"{place} has a webhook {hook.get('name')}, which is not the plug-in's"
            elif service.get("namespace", values.namespace) != values.namespace:
                yield (
                    f"{place} asks a Service in {service['namespace']}: write namespace: "
                    f"{service['namespace']}, and change it later"
                )
            elif (hook.get("clientConfig") or {}).get("url"):
                yield f"{place} asks {hook['clientConfig']['url']}, no Service of the cluster"
    elif place.kind == "Secret" and (
        thing.live.get("immutable")
        or (place.name == CERTIFICATE and thing.live.get("type", "Opaque") != "Opaque")
    ):
        yield (
            f"{place} is "
            f"{'immutable' if thing.live.get('immutable') else 'of the type ' + thing.live['type']}: its "
            "certificate can't be replaced"
        )


def unchangeable(rendered: Rendered, state: State | None) -> tuple[Change, ...]:
    """Return why a live object has to be replaced; empty if it can change in place."""
    place = place_of(rendered.manifest)
    thing = state.things.get(place) if state else None
    if thing is None or thing.going:
        return ()
    if path := FIXED.get(place.kind):
        now, wanted = (_at(each, path) for each in (thing.live, rendered.manifest))
        return () if now == wanted else (Change(f"{place}.{'.'.join(path)}", now, wanted),)
    if place.kind == "ConfigMap" and thing.live.get("immutable"):
        return (Change(f"{place}.immutable", now=True, wanted=False),)
    if place.kind == "Service" and (ports := _ports(thing.live)) - _ports(rendered.manifest):
        return (Change(f"{place}.spec.ports", sorted(ports), sorted(_ports(rendered.manifest))),)
    return ()


def _at(thing: Mapping[str, object], path: Sequence[str]) -> object:
    found: object = thing
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return {key: value for key, value in found.items() if value} if isinstance(found, Mapping) else found


def _ports(service: Object) -> set[int]:
    return {each.get("port", 0) for each in (service.get("spec") or {}).get("ports") or ()}


def foreign(state: State | None, trust: Trust) -> bool:
    """Return whether the API server asks a webhook whose certificate is not signed by this site's
    authorities.
    """
    return state is not None and not trust.signer and any(place.kind in ASKING for place in state.things)


def trusting_both(rendered: Rendered, state: State, bundle: str) -> Rendered:
    """The configuration that trusts `bundle` (base64) in addition to the authorities that it trusts now."""
    manifest = rendered.manifest
    (hook,) = manifest["webhooks"]
    now = trusted(state.things[place_of(manifest)])
    both = (
        now
        if _decoded(bundle) in _decoded(now)
        else base64.b64encode(b"\n".join(filter(None, (_decoded(bundle).strip(), _decoded(now))))).decode()
    )
    config = {**hook["clientConfig"], "caBundle": both if _decoded(bundle) else bundle}
    return replace(rendered, manifest={**manifest, "webhooks": [{**hook, "clientConfig": config}]})


def trusted(thing: Thing) -> str:
    """The authorities that a configuration trusts, in base64."""
    return next(
        (
            str((hook.get("clientConfig") or {}).get("caBundle") or "")
            for hook in thing.live.get("webhooks") or ()
        ),
        "",
    )


def must_wait(state: State | None, values: Values) -> Place | None:
    """The webhook's Deployment, if pods of it may still show a certificate that would no longer
    be trusted.
    """
    place = Place("apps/v1", "Deployment", values.namespace, WEBHOOK)
    running = state.things.get(place) if state else None
    if state is None or running is None:
        return None
    other = any(
        place.kind in ASKING and trusted(thing) not in ("", values.bundle)
        for place, thing in state.things.items()
    )
    return place if other and webhook_late(running.live) else None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
