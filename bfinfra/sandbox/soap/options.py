"""OptionManager: vCenter's settings and a host's advanced options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.option.OptionManager"
SESSION_TIMEOUT = "config.vmacore.soap.sessionTimeout"
UNITS = {"s": 1, "m": 60, "h": 3600}


@computed(MANAGER, "setting")
def _setting(inventory: Inventory, this: Managed) -> Any:
    return options(inventory, this)


def options(inventory: Inventory, this: Managed) -> Any:
    """The options: a host's lie in its configuration."""
    host = inventory.objects.get(this.hidden.get("host", ""))
    return host["config"].option if host else this["setting"]


@method(MANAGER, "QueryOptions", writes=False)
def query(call: Call, this: Managed, args: Any) -> Any:
    """The option of a name, or all below it ("Net."). InvalidName where there is none."""
    name = args.name or ""
    found = [
        each
        for each in options(call.inventory, this)
        if not name or each.key == name or each.key.startswith(name if name.endswith(".") else f"{name}.")
    ]
    if not found:
        raise vim.fault.InvalidName(name=name, msg=f"The name '{name}' is not valid.")
    return found


@method(MANAGER, "UpdateOptions")
def update(call: Call, this: Managed, args: Any) -> None:
    """Set options. InvalidName for one that a host doesn't have."""
    host = call.inventory.objects.get(this.hidden.get("host", ""))
    if host is not None:
        call.need("Host.Config.AdvancedConfig", host)
        need_connected(host)
    found = {each.key: each for each in options(call.inventory, this)}
    for each in args.changedValue:
        if host is not None and each.key not in found:
            raise vim.fault.InvalidName(
                name=each.key, msg=f"The name '{each.key}' is not valid: {host.name} has no such option."
            )
        if host is None and each.key == SESSION_TIMEOUT:
            call.sessions.idle = seconds(str(each.value))
        found[each.key] = vim.option.OptionValue(key=each.key, value=each.value)
    if host is not None:
        host["config"].option = list(found.values())
    else:
        this["setting"] = list(found.values())
    call.inventory.touch(this, *([host] if host else []))


def seconds(text: str) -> float:
    """A session timeout in seconds: "2s", "30m"; a bare number means minutes. InvalidArgument."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text and text[-1] in UNITS else (text, 60)
    if not number.isdigit():
        raise vmodl.fault.InvalidArgument(
            invalidProperty="changedValue", msg=f"A specified parameter was not correct: {text!r} is no time"
        )
    return float(number) * unit
