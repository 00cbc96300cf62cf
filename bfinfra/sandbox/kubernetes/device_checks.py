"""The checks of device classes, resource claims and resource slices, in kube-apiserver's words. Parts of the
API that the sandbox does not implement are refused, so that none is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from bfinfra.sandbox.kubernetes.causes import (
    LABEL,
    LABEL_RULE,
    SUBDOMAIN,
    SUBDOMAIN_RULE,
    duplicate,
    forbidden_field,
    required,
    unsupported,
    wrong,
)
from bfinfra.sandbox.kubernetes.device_cel import Unsupported, compiled
from bfinfra.sandbox.kubernetes.errors import Cause
from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.quantity import amount

VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MODES = ("All", "ExactCount")
PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
ONE_PLACE = f"exactly one of {', '.join(f'`{each}`' for each in PLACES)} is required"
ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
VALUES = ("string", "int", "bool", "version")
LONGEST, MOST_DEVICES, MOST_VALUES, MOST_REQUESTS, MOST_SELECTORS = 64, 128, 32, 32, 32
LEFT_OUT = {
    "class": ("config", "extendedResourceName"),
    "claim": ("constraints", "config"),
    "request": ("firstAvailable",),
    "exactly": ("tolerations", "capacity", "derivedAttributes"),
    "slice": ("nodeSelector", "allNodes", "perDeviceNodeSelection", "sharedCounters"),
    "device": (
        "consumesCounters",
        "taints",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "allowMultipleAllocations",
        "bindsToNode",
        "bindingConditions",
        "bindingFailureConditions",
        "nodeAllocatableResourceMappings",
    ),
    "attribute": ("strings", "ints", "bools", "versions"),
}
"""Fields of the API that the sandbox does not implement."""


def device_class(_: Object | None, after: Object) -> Iterator[Cause]:
    """Everything that is wrong with a DeviceClass."""
    spec = after.get("spec") or {}
    yield from _left_out("class", spec, "spec")
    yield from _selectors(spec.get("selectors") or [], "spec.selectors")


def claim(before: Object | None, after: Object) -> Iterator[Cause]:
    """Everything that is wrong with a ResourceClaim. Its spec never changes."""
    if before is None:
        yield from _devices(dig(after, "spec", "devices", default={}), "spec.devices")
    elif before.get("spec") != after.get("spec"):
        yield wrong("spec", after.get("spec"), "field is immutable")


def template(before: Object | None, after: Object) -> Iterator[Cause]:
    """Everything that is wrong with a ResourceClaimTemplate. Its spec never changes."""
    if before is None:
        yield from _devices(dig(after, "spec", "spec", "devices", default={}), "spec.spec.devices")
    elif before.get("spec") != after.get("spec"):
        yield wrong("spec", after.get("spec"), "field is immutable")


def resource_slice(before: Object | None, after: Object) -> Iterator[Cause]:
    """Everything that is wrong with a ResourceSlice."""
    spec = after.get("spec") or {}
    yield from _driver(spec.get("driver"), "spec.driver")
    yield from _pool(spec.get("pool") or {}, "spec.pool")
    for path in (("pool", "name"), ("driver",), ("nodeName",)) if before else ():
        if dig(before, "spec", *path) != dig(spec, *path):
            yield wrong(".".join(("spec", *path)), dig(spec, *path), "field is immutable")
    places = [each for each in PLACES if spec.get(each) is not None]
    if not places:
        yield required("spec", ONE_PLACE)
    elif len(places) > 1:
        text = f"{{{', '.join(f'`{each}`' for each in places)}}}"
        yield wrong("spec", text, f"{ONE_PLACE}, but multiple fields are set")
    yield from _left_out("slice", spec, "spec")
    devices = spec.get("devices") or []
    yield from _many(devices, MOST_DEVICES, "spec.devices")
    for number, device in enumerate(devices):
        yield from _device(device, f"spec.devices[{number}]")
    yield from _duplicates([str(each.get("name")) for each in devices], "spec.devices")


def pod_claims(spec: Object, path: str) -> Iterator[Cause]:
    """Everything that is wrong with the claims that a pod's spec names. `path` leads to the spec."""
    known: set[str] = set()
    for number, each in enumerate(spec.get("resourceClaims") or []):
        where, name = f"{path}.resourceClaims[{number}]", str(each.get("name") or "")
        if not name:
            yield required(f"{where}.name")
        elif name in known:
            yield duplicate(f"{where}.name", name)
        else:
            yield from _label(name, f"{where}.name")
        known.add(name)
        given = [kind for kind in ("resourceClaimName", "resourceClaimTemplateName") if each.get(kind)]
        if len(given) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield wrong(where, each, why)
        elif not given:
            yield wrong(where, each, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for kind in given:
            if not re.fullmatch(SUBDOMAIN, each[kind]):
                yield wrong(f"{where}.{kind}", each[kind], SUBDOMAIN_RULE)
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(kind) or []):
            where = f"{path}.{kind}[{position}].resources.claims"
            yield from _used(dig(container, "resources", "claims", default=[]), known, where)


def _used(claims: list[Object], known: set[str], path: str) -> Iterator[Cause]:
    """The claims that a container uses."""
    seen: set[str] = set()
    for number, each in enumerate(claims):
        name, request = str(each.get("name") or ""), str(each.get("request") or "")
        where, text = f"{path}[{number}]", f"{name}/{request}" if request else name
        if not name:
            yield required(where)
        elif text in seen or name in seen or (not request and any(s.startswith(f"{name}/") for s in seen)):
            yield duplicate(where, text)
        elif name not in known:
            yield Cause("FieldValueNotFound", f"Not found: {json.dumps(name)}", where)
        seen.add(text)


def _devices(devices: Object, path: str) -> Iterator[Cause]:
    """The devices that a claim asks for."""
    yield from _left_out("claim", devices, path)
    requests = devices.get("requests") or []
    yield from _many(requests, MOST_REQUESTS, f"{path}.requests")
    for number, request in enumerate(requests):
        where = f"{path}.requests[{number}]"
        yield from _label(str(request.get("name") or ""), f"{where}.name")
        yield from _left_out("request", request, where)
        if request.get("exactly") is None and not request.get("firstAvailable"):
            yield required(where, ONE_REQUEST)
        elif request.get("exactly") is not None and request.get("firstAvailable"):
            yield wrong(where, None, f"{ONE_REQUEST}, but multiple fields are set")
        elif request.get("exactly") is not None:
            yield from _exactly(request["exactly"], f"{where}.exactly")
    yield from _duplicates([str(each.get("name")) for each in requests], f"{path}.requests")


def _exactly(request: Object, path: str) -> Iterator[Cause]:
    name, mode, count = request.get("deviceClassName"), request.get("allocationMode"), request.get("count")
    if not name:
        yield required(f"{path}.deviceClassName")
    elif not re.fullmatch(SUBDOMAIN, name):
        yield wrong(f"{path}.deviceClassName", name, SUBDOMAIN_RULE)
    yield from _left_out("exactly", request, path)
    yield from _selectors(request.get("selectors") or [], f"{path}.selectors")
    if mode not in MODES:
        yield unsupported(f"{path}.allocationMode", mode, MODES)
    elif mode == "All" and count:
        yield wrong(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and (count or 0) <= 0:
        yield wrong(f"{path}.count", count, "must be greater than zero")


def _selectors(selectors: list[Object], path: str) -> Iterator[Cause]:
    yield from _many(selectors, MOST_SELECTORS, path)
    for number, each in enumerate(selectors):
        where = f"{path}[{number}].cel"
        if each.get("cel") is None:
            yield required(where)
            continue
        try:
            compiled(str(each["cel"].get("expression") or ""))
        except Unsupported as error:
            yield wrong(f"{where}.expression", each["cel"].get("expression") or "", str(error))


def _pool(pool: Object, path: str) -> Iterator[Cause]:
    name = str(pool.get("name") or "")
    if not name:
        yield required(f"{path}.name")
    elif not all(re.fullmatch(SUBDOMAIN, each) for each in name.split("/")):
        yield wrong(f"{path}.name", name, SUBDOMAIN_RULE)
    if pool.get("resourceSliceCount", 0) <= 0:
        yield wrong(
            f"{path}.resourceSliceCount", pool.get("resourceSliceCount", 0), "must be greater than zero"
        )
    if pool.get("generation", 0) < 0:
        yield wrong(f"{path}.generation", pool["generation"], "must be greater than or equal to zero")


def _device(device: Object, path: str) -> Iterator[Cause]:
    yield from _label(str(device.get("name") or ""), f"{path}.name")
    yield from _left_out("device", device, path)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if (total := len(attributes) + len(capacity)) > MOST_VALUES:
        why = f"the total number of attributes and capacities must not exceed {MOST_VALUES}"
        yield wrong(path, total, why)
    for key, value in attributes.items():
        yield from _qualified(key, f"{path}.attributes")
        yield from _value(value, f"{path}.attributes[{key}]")
    for key, value in capacity.items():
        yield from _qualified(key, f"{path}.capacity")
        if value.get("requestPolicy") is not None:
            where = f"{path}.capacity[{key}].requestPolicy"
            yield forbidden_field(where, "allowMultipleAllocations must be true")
        try:
            amount(value.get("value"))
        except ValueError as error:
            yield wrong(f"{path}.capacity[{key}].value", value.get("value"), str(error))


def _value(value: Object, path: str) -> Iterator[Cause]:
    """The value of an attribute: one of one kind."""
    yield from _left_out("attribute", value, path)
    given = [each for each in (*VALUES, *LEFT_OUT["attribute"]) if value.get(each) is not None]
    if len(given) != 1:
        yield wrong(path, value if given else "", "exactly one value must be specified")
    if (version := value.get("version")) is not None and not VERSION.fullmatch(version):
        yield wrong(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
    for kind in ("string", "version"):
        if len(str(value.get(kind) or "")) > LONGEST:
            yield _too_long(f"{path}.{kind}", LONGEST)


def _qualified(name: str, path: str) -> Iterator[Cause]:
    """The name of an attribute or a capacity, with or without a domain."""
    domain, slash, own = name.rpartition("/")
    if slash:
        yield from _driver(domain, path)
    if len(own) > 32:
        yield _too_long(path, 32)
    if not IDENTIFIER.fullmatch(own):
        yield wrong(path, own, "a valid C identifier must start with alphabetic character or '_'")


def _driver(name: object, path: str) -> Iterator[Cause]:
    if not name:
        yield required(path)
    elif len(str(name)) > 63 or not re.fullmatch(SUBDOMAIN, str(name)):
        yield wrong(path, name, SUBDOMAIN_RULE)


def _label(name: str, path: str) -> Iterator[Cause]:
    if len(name) > 63 or not re.fullmatch(LABEL, name):
        yield wrong(path, name, LABEL_RULE)


def _left_out(what: str, given: Object, path: str) -> Iterator[Cause]:
    for field in LEFT_OUT[what]:
        if given.get(field) not in (None, [], {}):
            yield forbidden_field(f"{path}.{field}", "the sandbox does not implement this field")


def _many(things: list[Object], most: int, path: str) -> Iterator[Cause]:
    if len(things) > most:
        why = f"Too many: {len(things)}: must have at most {most} items"
        yield Cause("FieldValueTooMany", why, path)


def _duplicates(names: Iterable[str], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name in seen:
            yield duplicate(f"{path}[{number}]", name)
        seen.add(name)


def _too_long(path: str, most: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", path)
