"""Compares a server's properties with what its OVA declares. Refuses unknown, missing and unfit ones."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from bfinfra.backends.ova import Ova, Property, check
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty
from bfinfra.kinds.vcenter.bitfusion_server.spec import Item, Network, Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts, State
from bfinfra.model.errors import Refusal
from bfinfra.model.secret import Secret
from bfinfra.model.suggest import nearest

Value = str | Secret
WHAT: Mapping[Item, re.Pattern[str]] = {
    "gateway": re.compile(r"gateway"),
    "dns": re.compile(r"\bdns\b|name ?servers?"),
    "netmask": re.compile(r"net ?mask|subnet mask"),
    "address": re.compile(r"\bip ?(v4)?( ?addr(ess)?)?\b|\bcidr\b|\baddress\b"),
}
NUMBER = re.compile(r"(\d+)")
Part = Literal["guid", "url", "thumbprint"]
PARTS: Mapping[Part, re.Pattern[str]] = {
    "guid": re.compile(r"\bguid\b"),
    "thumbprint": re.compile(r"\b(thumb|finger)print\b"),
    "url": re.compile(r"\burl\b"),
}
"""What a server registers with vCenter by, and the words by which an OVA declares it: what the site leaves
out is filled in when the VM is created. (Installation guide.)
"""
NAMES: Mapping[Part, str] = {"guid": "GUID", "thumbprint": "certificate's thumbprint", "url": "URL"}


def checked(
    name: str, spec: Spec, ova: Ova, facts: BitfusionServerFacts, existing: State | None
) -> dict[str, Value]:
    """All properties to set. Raises Refusal, naming the field. `existing`: the VM that exists; None for a new
    one.
    """
    declared, found = (
        ova.declared,
        _noted_addresses(spec, ova) if name in facts.noted else _addresses(spec, ova),
    )
    for key, value in spec.properties.items():
        if key not in declared:
            raise Refusal(
                f"the OVA has no property {key}",
                field=f"properties.{key}",
                next=nearest(key, declared) or "see: bfinfra ova inspect",
            )
        found[key] = _fit(declared[key], value, facts.secrets.get((name, key)), f"properties.{key}")
    found |= _registered(spec, ova, facts.vcenter, existing)
    kept = () if existing is None else tuple(each.key for each in asked(ova).values())
    for property_ in ova.properties:
        if property_.required and property_.key not in found and property_.key not in kept:
            label = f" ({property_.label})" if property_.label else ""
            raise Refusal(
                f"the OVA's property {property_.key}{label} is missing",
                field="properties",
                why="it has no default",
                next=f"write properties: {{{property_.key}: …}}",
            )
    return found


def _fit(declared: Property, value: Value, checked: SecretProperty | None, where: str) -> Value:
    if not declared.user_configurable:
        raise Refusal(
            f"the OVA's property {declared.key} can't be set",
            field=where,
            why="its vendor did not make it configurable",
            next="leave it out",
        )
    if isinstance(value, Secret):
        if why := value.missing() if checked is None else checked.problem:
            raise Refusal(
                f"the property {declared.key} has no usable value",
                field=where,
                why=why,
                next="correct the reference or its value",
            )
        return value
    if declared.password:
        raise Refusal(
            f"the property {declared.key} is a password",
            field=where,
            why="a site file must not contain secrets",
            next="write a reference, such as {env: NAME}",
        )
    normal = normalised(declared, value)
    if why := check(declared, normal):
        raise Refusal(
            f"{value!r} does not fit the property {declared.key}",
            field=where,
            why=why,
            next="see: bfinfra ova inspect",
        )
    return normal


def normalised(declared: Property, value: str) -> str:
    """The value with booleans as OVF writes them."""
    return (
        {"true": "True", "false": "False"}.get(value.lower(), value) if declared.type == "boolean" else value
    )


def _addresses(spec: Spec, ova: Ova) -> dict[str, Value]:
    """The properties that take the adapters' addresses, gateways and name servers, with their values."""
    found: dict[str, Value] = {}
    for index, (label, network) in _numbered(spec, ova):
        if network.address is None and network.gateway is None and not network.dns:
            continue
        for item, value in _values(network, label, index, spec, ova).items():
            found[_key(item, label, index, network, spec, ova)] = value
    return found


def _noted_addresses(spec: Spec, ova: Ova) -> dict[str, Value]:
    """The same for a VM whose OVA is not there: only the properties whose key alone shows what they take."""
    found: dict[str, Value] = {}
    for index, (label, network) in _numbered(spec, ova):
        for item, value in _values(network, label, index, spec, ova).items():
            keys = (
                [given] if (given := network.keys.get(item)) else _candidates(item, label, index, spec, ova)
            )
            if len(keys) == 1 and keys[0] in ova.declared:
                found[keys[0]] = value
    return found


def _numbered(spec: Spec, ova: Ova) -> list[tuple[int, tuple[str, Network]]]:
    """The site's networks, each with the number of the OVA's network of that name, else with its own
    position.
    """
    names = [n.name for n in ova.networks]
    return [
        (names.index(item[0]) + 1 if item[0] in names else place, item)
        for place, item in enumerate(spec.networks.items(), start=1)
    ]


def _values(network: Network, label: str, index: int, spec: Spec, ova: Ova) -> dict[Item, str]:
    """The values of one adapter. If the OVA has a property for the netmask, the address is written without
    its prefix.
    """
    values: dict[Item, str] = {}
    if network.address:
        apart = network.keys.get("netmask") or _candidates("netmask", label, index, spec, ova)
        values["address"] = network.ip if apart else network.address
        if apart:
            values["netmask"] = _netmask(network.address.rpartition("/")[2], 6 if ":" in network.ip else 4)
    if network.gateway:
        values["gateway"] = network.gateway
    if network.dns:
        values["dns"] = ",".join(network.dns)
    return values


def _key(item: Item, label: str, index: int, network: Network, spec: Spec, ova: Ova) -> str:  # noqa: PLR0913 - one adapter's whole context
    if given := network.keys.get(item):
        if given not in ova.declared:
            raise Refusal(
                f"the OVA has no property {given}",
                field=f"networks.{label}.keys.{item}",
                next=nearest(given, ova.declared),
            )
        return given
    found = _candidates(item, label, index, spec, ova)
    if len(found) != 1:
        why = f"{', '.join(found)} may be meant" if found else "no label says so"
        raise Refusal(
            f"it is not clear which of the OVA's properties takes the {item} of {label}",
            field=f"networks.{label}",
            why=why,
            next=f"write networks.{label}.keys.{item}, or set the property under properties",
        )
    return found[0]


def _candidates(item: Item, label: str, index: int, spec: Spec, ova: Ova) -> list[str]:
    """The properties whose label or key names this item of the adapter with this name or
    number.
    """
    return telling(item, label, index, frozenset(spec.properties), ova.configurable)


@functools.lru_cache(maxsize=256)
def _netmask(prefix: str, version: int) -> str:
    network = ipaddress.IPv6Network if version == 6 else ipaddress.IPv4Network
    return str(network((0, int(prefix))).netmask)


@functools.lru_cache(maxsize=256)
def telling(
    item: Item, label: str, index: int, given: frozenset[str], declared: tuple[tuple[str, str], ...]
) -> list[str]:
    """Cached: hundreds of servers with the same OVA and the same networks ask for it."""
    texts = {key: _words(f"{key} {text}") for key, text in declared if key not in given}
    fit = [
        key
        for key, text in texts.items()
        if next((w for w, pattern in WHAT.items() if pattern.search(text)), None) == item
    ]
    by_name = [key for key in fit if f" {_words(label)} " in f" {texts[key]} "]
    if by_name:
        return by_name
    numbered = [
        key
        for key in fit
        if (n := NUMBER.search(re.sub(r"ipv?[46]", "", texts[key])))
        and _position(int(n[1]), tuple(texts.values())) == index
    ]
    plain = [key for key in fit if not NUMBER.search(re.sub(r"ipv?[46]", "", texts[key]))]
    return numbered or (plain if index == 1 else [])


def _position(number: int, texts: Iterable[str]) -> int:
    """The adapter that a number in a label means; some vendors count from 0."""
    from_nought = any(re.search(r"\b(nic|net|network|eth|adapter|interface) ?0\b", text) for text in texts)
    return number + 1 if from_nought else number


def _words(text: str) -> str:
    """`guestinfo.net1_ip (NIC 1)` → `guestinfo net1 ip nic 1`, in lower case."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


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
        part = next((part for part, pattern in PARTS.items() if pattern.search(text)), None)
        if part and "vcenter" in text:
            found.append((part, key))
    return tuple(found)


def _first(named: Iterable[tuple[Part, str]], declared: Mapping[str, Property]) -> dict[Part, Property]:
    found: dict[Part, Property] = {}
    for part, key in named:
        if not declared[key].password:
            found.setdefault(part, declared[key])
    return found


def _registered(spec: Spec, ova: Ova, vcenter: Identity | None, existing: State | None) -> dict[str, str]:
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
