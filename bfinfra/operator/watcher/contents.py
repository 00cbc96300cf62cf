"""The variables and files of a Site, from the Secrets and ConfigMaps that it names. A Job gets them from the
kubelet; a watcher, which follows many Sites, reads them by name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfinfra.model.errors import BfinfraError, Forbidden, Problem
from bfinfra.model.redact import hide
from bfinfra.operator.declared import Contents, refusal, text
from bfinfra.operator.desired import Desired
from bfinfra.operator.job import site_text
from bfinfra.operator.names import SITE

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.backends.kubernetes.cluster import Object

KINDS = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}


def read(api: ClusterClient, wanted: Desired) -> Contents:
    """Read the objects that the Site names, each once. Raises BfinfraError with what is missing, or what no
    Site may declare.
    """
    if why := refusal(wanted):
        raise BfinfraError(Problem(why))
    known: dict[tuple[str, str], Object] = {}

    def value(ref: Mapping[str, Mapping[str, str]]) -> bytes:
        way, named = next((way, ref[way]) for way in KINDS if way in ref)
        place = KINDS[way], named["name"]
        if place not in known:
            known[place] = _object(api, *place, wanted.namespace)
        return _value(known[place], *place, named["key"])

    env = {name: _text(name, value(ref), secret="secretKeyRef" in ref) for name, ref in wanted.env.items()}
    files = {path: value(ref) for path, ref in wanted.files.items()}
    return Contents(env, {**files, SITE: site_text(wanted).encode()})


def _object(api: ClusterClient, kind: str, name: str, namespace: str) -> Object:
    try:
        found = api.get("v1", kind, name, namespace)
    except Forbidden as error:
        raise BfinfraError(
            Problem(
                f"the watcher may not read the {kind} {namespace}/{name}",
                why=error.problems[0].why,
                next="let its account get it, as deploy/watcher/rbac.yaml does",
            )
        ) from None
    if found is None:
        raise BfinfraError(
            Problem(f"there is no {kind} {namespace}/{name}", next="create it, or correct the Site")
        )
    return found


def _value(found: Object, kind: str, name: str, key: str) -> bytes:
    data = found.get("data") or {}
    if kind == "ConfigMap":
        if key in data:
            return str(data[key]).encode()
        data = found.get("binaryData") or {}
    if key not in data:
        raise BfinfraError(Problem(f"the {kind} {name} has no key {key}", next="add it, or correct the Site"))
    try:
        return base64.b64decode(str(data[key]), validate=True)
    except binascii.Error:
        raise BfinfraError(Problem(f"the key {key} of the {kind} {name} is not base64")) from None


def _text(name: str, value: bytes, *, secret: bool) -> str:
    return hide(text(name, value)) if secret else text(name, value)
