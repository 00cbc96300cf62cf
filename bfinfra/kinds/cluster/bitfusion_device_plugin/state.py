"""The live state of a device plug-in: its objects, its certificates, and the record that lists them all."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from bfinfra.backends.kubernetes.marks import mark_of, notes
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster_locator import WHOLE, Cluster
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

if TYPE_CHECKING:
    from bfinfra.backends.authority import Certificate

Object = dict[str, Any]
AUTHORITY, CERTIFICATE = "bwki-webhook-ca", "bwki-webhook-certs"
"""Secrets: the authority with its key, which no pod mounts; the webhook's certificate with its key."""
CA_KEYS, OWN_KEYS = ("tls.crt", "tls.key"), ("cert.pem", "key.pem")


class Place(NamedTuple):
    """The place of an object; `namespace` is "" for cluster-wide ones."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" + (f" in {self.namespace}" if self.kind == "ResourceQuota" else "")


@dataclass(frozen=True)
class Thing:
    """One object, without its secrets. `written`: when its spec or data was last written, "" if that isn't
    known.
    """

    live: Mapping[str, Any] = field(repr=False)
    mark: Mark | None
    digest: str
    going: bool
    uid: str
    written: str = ""


@dataclass(frozen=True)
class Record:
    """The ConfigMap that lists every place that was or will be written."""

    places: tuple[Place, ...]
    mark: Mark | None
    going: bool


@dataclass(frozen=True)
class Trust:
    """`authorities`: newest first; `bundle`: their PEM in base64; `whole`: whether the key in the cluster is
    the newest one's. `serving`: the webhook's certificate; `fits`: whether its key is there, too; `signer`:
    the fingerprint of the authority that signed it.
    """

    authorities: tuple[Certificate, ...] = ()
    bundle: str = ""
    whole: bool = False
    serving: Certificate | None = None
    fits: bool = False
    signer: str = ""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The live state of a device plug-in."""

    cluster: Annotated[str, Ref(*WHOLE)]
    spaces: tuple[Annotated[str, Ref("namespace", optional=True)], ...] = ()
    token_secret: Annotated[str, Ref("token_secret")] | None = None
    registry_credential: Annotated[str, Ref("registry_credential")] | None = None
    home: Endpoint
    records: Mapping[Place, Record] = field(default_factory=dict)
    things: Mapping[Place, Thing] = field(default_factory=dict)
    trust: Trust = Trust()


@dataclass(frozen=True)
class NamespaceFacts:
    """The other facts that decisions need. `now`: UTC; `labels`: of a namespace that this site doesn't make,
    None if there is none of that name.
    """

    now: datetime
    labels: Mapping[str, Mapping[str, str] | None]


def record_place(namespace: str, name: str) -> Place:
    """The place of a plug-in's record."""
    return Place("v1", "ConfigMap", namespace, f"bfinfra-device-plugin-{name}")


def place_of(obj: Mapping[str, Any]) -> Place:
    """The place of an object or manifest."""
    return Place(
        obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    )


def record_of(obj: Object) -> Record:
    """A record as read; a damaged one lists nothing."""
    try:
        places = tuple(
            Place(*map(str, each)) for each in json.loads((obj.get("data") or {}).get("places") or "[]")
        )
    except (ValueError, TypeError):
        places = ()
    return Record(places, mark_of(obj), bool(obj["metadata"].get("deletionTimestamp")))


def state_of(records: Sequence[Object], objects: Sequence[Object], cluster: Cluster, namespace: str) -> State:
    """The state. `objects`: this site's, and others' in wanted places; `namespace`: the webhook's."""
    found = {place_of(obj): record_of(obj) for obj in records}
    things = {place_of(obj): _thing(obj) for obj in objects}
    mark = _mark([each.mark for each in found.values()], [each.mark for each in things.values()])
    applied = (mark.applied if mark else None) or {}
    written = [
        applied.get("namespace"),
        applied.get("plugin_namespace"),
        *(quota["namespace"] for quota in applied.get("quotas") or ()),
    ]
    return State(
        mark=mark,
        cluster=cluster.key.name,
        home=cluster.endpoint,
        records=found,
        things=things,
        trust=_trust(objects, namespace),
        spaces=tuple(dict.fromkeys([*filter(None, written), *(place.namespace for place in found)])),
        token_secret=applied.get("token_secret"),
        registry_credential=applied.get("registry_credential"),
    )


def _thing(obj: Object) -> Thing:
    hidden = {"data", "stringData"} if obj["kind"] == "Secret" else set()
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    live = {**{key: value for key, value in obj.items() if key not in hidden}, "metadata": metadata}
    return Thing(
        live,
        mark_of(obj),
        notes(obj).get(RENDERED, ""),
        bool(metadata.get("deletionTimestamp")),
        str(metadata.get("uid", "")),
        _written(obj),
    )


def _written(obj: Object) -> str:
    entries = [
        each
        for each in obj["metadata"].get("managedFields") or ()
        if {"f:spec", "f:data"} & {*(each.get("fieldsV1") or ())}
    ]
    return max((str(each.get("time", "")) for each in entries), default="")


def _mark(records: Sequence[Mark | None], things: Sequence[Mark | None]) -> Mark | None:
    """The record's mark if all objects have this site's mark; another site's mark if one has it; None if an
    object has no mark, so that it isn't overwritten.
    """
    every = [*records, *things]
    first = every[0] if every else None
    if first is None or None in every:
        return None
    foreign = next((mark for mark in every if mark and mark.owner != first.owner), None)
    return foreign or (first if records else first.pending)


def _trust(objects: Sequence[Object], namespace: str) -> Trust:
    from bfinfra.backends import authority  # noqa: PLC0415 - start-up is a feature

    secrets = {
        obj["metadata"]["name"]: obj
        for obj in objects
        if obj["kind"] == "Secret" and obj["metadata"]["namespace"] == namespace
    }
    ca, key = (value_of(secrets.get(AUTHORITY), each) for each in CA_KEYS)
    own, own_key = (value_of(secrets.get(CERTIFICATE), each) for each in OWN_KEYS)
    serving = authority.read(own)
    return Trust(
        authority.read(ca),
        base64.b64encode(ca).decode(),
        bool(ca) and authority.belongs(ca, key),
        serving[0] if serving else None,
        bool(own) and authority.belongs(own, own_key),
        authority.signer(own, ca) if own and ca else "",
    )


def value_of(secret: Object | None, key: str) -> bytes:
    """One value of a Secret, empty if it doesn't exist."""
    try:
        return base64.b64decode(((secret or {}).get("data") or {}).get(key) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
