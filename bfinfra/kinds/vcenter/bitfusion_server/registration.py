"""The properties with which a server registers with vCenter: its GUID, its URL, the thumbprint of its
certificate. (Installation guide.)

The OVA declares which of them it takes, under which keys. bfinfra fills in those that the site leaves out
when it creates the VM.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from bfinfra.backends.ova import Ova, Property
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import State
from bfinfra.model.errors import Refusal

Part = Literal["guid", "url", "thumbprint"]
WHAT: Mapping[Part, re.Pattern[str]] = {
    "guid": re.compile(r"\bguid\b"),
    "thumbprint": re.compile(r"\b(thumb|finger)print\b"),
    "url": re.compile(r"\burl\b"),
}
NAMES: Mapping[Part, str] = {"guid": "GUID", "thumbprint": "certificate's thumbprint", "url": "URL"}


def asked(ova: Ova) -> dict[Part, Property]:
    """The properties of an OVA that take one of them, by what they take."""
    return _first(_named(ova.configurable), ova.declared)


def among(properties: Iterable[Property]) -> dict[Part, Property]:
    """The same for a list of properties."""
    declared = {each.key: each for each in properties}
    labels = ((each.key, each.label) for each in declared.values() if each.user_configurable)
    return _first(_named(tuple(labels)), declared)


@functools.cache
def _named(labels: tuple[tuple[str, str], ...]) -> tuple[tuple[Part, str], ...]:
    """Return the parts that properties hold, judged by their keys and labels, with their keys. Cached, as
    many servers have the same appliance.
    """
    found: list[tuple[Part, str]] = []
    for key, label in labels:
        text = " ".join(re.findall(r"[a-z0-9]+", f"{key} {label}".lower()))
        part = next((part for part, pattern in WHAT.items() if pattern.search(text)), None)
        if part and "vcenter" in text:
            found.append((part, key))
    return tuple(found)


def _first(named: Iterable[tuple[Part, str]], declared: Mapping[str, Property]) -> dict[Part, Property]:
    found: dict[Part, Property] = {}
    for part, key in named:
        if not declared[key].password:
            found.setdefault(part, declared[key])
    return found


def filled(spec: Spec, ova: Ova, vcenter: Identity | None, existing: State | None) -> dict[str, str]:
    """The properties to set that the site leaves out. Raises Refusal if the site gives a wrong value.

    `existing`: the VM that exists; None for a new one. It keeps the value that it was created with, unless
    that value came from the site, is wrong, and has left the site.
    """
    return dict(_filled(spec, ova, vcenter, existing))


def _filled(
    spec: Spec, ova: Ova, vcenter: Identity | None, existing: State | None
) -> Iterator[tuple[str, str]]:
    before = ((existing.mark.applied or {}) if existing and existing.mark else {}).get("properties", {})
    for part, each in asked(ova).items():
        known, written = _known(part, vcenter), spec.properties.get(each.key)
        now = existing.machine.properties.get(each.key, "") if existing else ""
        if isinstance(written, str) and known and (existing is None or now != written):
            _check(part, each.key, written, vcenter)
        left_out = written is None and known
        if left_out and (existing is None or (each.key in before and not _right(part, now, vcenter))):
            yield each.key, known


def _known(part: Part, vcenter: Identity | None) -> str:
    return str(getattr(vcenter, part)) if vcenter else ""


def _right(part: Part, value: str, vcenter: Identity | None) -> bool:
    if vcenter is None:
        return True
    right = {"guid": vcenter.has_guid, "url": vcenter.answers_at, "thumbprint": vcenter.shows}
    return right[part](value)


def _check(part: Part, key: str, written: str, vcenter: Identity | None) -> None:
    if vcenter is not None and not _right(part, written, vcenter):
        raise Refusal(
            f"{written} is not the {NAMES[part]} of {vcenter.server}",
            field=f"properties.{key}",
            why=(
                f"with it the server can't register, and enables no client; {vcenter.server} has "
                f"{_known(part, vcenter)}"
            ),
            next="leave it out, and bfinfra fills it in; or correct it",
        )
