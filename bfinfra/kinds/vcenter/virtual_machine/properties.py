"""Compares the properties of a VM with what its OVF item declares. Reads of a secret only whether it changed
and whether it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bfinfra.backends import ova
from bfinfra.backends.vcenter.library_items import Declared
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.kinds.vcenter.base.machine.secrets import SecretProperty, given, inspect
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.model.awaited import away
from bfinfra.model.compare import Change
from bfinfra.model.errors import Refusal
from bfinfra.model.resource import State
from bfinfra.model.secret import Secret
from bfinfra.model.suggest import nearest

BOOLEANS = {"true": "True", "false": "False"}
"""Booleans as OVF writes them."""


def look(
    spec: Spec,
    kept: Mapping[str, str] | None,
    declared: Sequence[Declared],
    pepper: str,
    state: State | None = None,
) -> Mapping[str, SecretProperty]:
    """The secret properties. `kept`: property → digest of what an existing VM was given. `state`: the
    existing VM.
    """
    types = {each.key: ova.Property(each.key, each.type) for each in declared}
    found: dict[str, SecretProperty] = {}
    for key, value in spec.properties.items():
        if isinstance(value, Secret):
            if gone := away(spec, {f"properties.{key}": value}):
                found[key] = SecretProperty(stale=not given(state, kept, key, value), away=gone[1])
            else:
                found[key] = inspect(key, value, types.get(key), kept, pepper)
    return found


def check(spec: Spec, declared: Sequence[Declared], secrets: Mapping[str, SecretProperty]) -> None:
    """Raises Refusal for a property that the item doesn't let anyone set, a value that doesn't fit, and a
    password in the file.
    """
    types = {each.key: each.type for each in declared}
    for key, value in spec.properties.items():
        at = f"properties.{key}"
        if key not in types:
            raise Refusal(
                f"the item has no property {key} that can be set", field=at, next=nearest(key, types)
            )
        if isinstance(value, Secret):
            usable(key, secrets)
        elif types[key].startswith("password"):
            raise Refusal(
                f"the property {key} is a password",
                field=at,
                why="a site file must not contain secrets",
                next="write a reference, such as {env: NAME}",
            )
        elif why := ova.check(ova.Property(key, types[key]), value):
            raise Refusal(f"{value!r} does not fit the property {key}", field=at, why=why)


def usable(key: str, secrets: Mapping[str, SecretProperty]) -> SecretProperty:
    """Return what is known of a secret. Raises Refusal if it has no usable value."""
    checked = secrets.get(key, SecretProperty())
    if checked.problem:
        raise Refusal(
            f"the property {key} has no usable value",
            field=f"properties.{key}",
            why=checked.problem,
            next="correct the reference or its value",
        )
    return checked


def differing(
    spec: Spec, machine: Vm, secrets: Mapping[str, SecretProperty]
) -> Iterator[tuple[Change, str | Secret]]:
    """The properties that differ, each as the change and the value to write. Raises Refusal for a property
    that the VM doesn't have.
    """
    for key, value in spec.properties.items():
        if key not in machine.properties:
            raise Refusal(
                f"{machine.name} has no property {key}",
                field=f"properties.{key}",
                why="its OVF declared none",
                next=nearest(key, machine.properties),
            )
        if isinstance(value, Secret):
            if usable(key, secrets).stale:
                yield Change(f"properties.{key}", "another value", str(value)), value
        elif machine.properties[key] != normal(value) and machine.properties[key] != value:
            yield Change(f"properties.{key}", machine.properties[key], value), value


def normal(value: str) -> str:
    """The value with booleans as OVF writes them."""
    return BOOLEANS.get(value.lower(), value)
