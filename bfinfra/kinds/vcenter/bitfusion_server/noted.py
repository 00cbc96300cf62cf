"""The facts that an existing server has about its appliance when the OVA is not there: enough to compare it,
not enough to create it.
"""

from __future__ import annotations

from pathlib import Path

from bfinfra.backends.ova import Hardware, LocalSource, Ova, Product, Property
from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import State


def noted(spec: Spec, state: State | None) -> Ova | None:
    """An appliance with the properties that the VM has. None if the VM is not complete, or if the site
    changed in a way that only the OVA can answer. A VM without a mark can be adopted without its OVA.
    """
    applied = (state.mark.applied or {}) if state and state.mark else {}
    now = spec.applied()
    if state is None or state.importing:
        return None
    if state.mark is not None and applied.get("ova") != now["ova"]:
        return None
    if applied.get("properties", {}).keys() - now.get("properties", {}).keys():
        return None  # a property that leaves the site returns to its default, which only the OVA contains
    return Ova(
        source=LocalSource(Path(spec.ova.text), 0, 0),
        descriptor="",
        product=Product(),
        eula=(),
        options=(),
        properties=tuple(_property(key, value) for key, value in state.machine.properties.items()),
        networks=(),
        disks=(),
        hardware=Hardware(),
        files={},
        manifest={},
        members={},
    )


def _property(key: str, value: str) -> Property:
    return Property(
        key, "boolean" if value in ("True", "False") else "string", user_configurable=True, default=value
    )
