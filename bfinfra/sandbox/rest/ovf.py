"""Machines from OVF items of content libraries. Source: com.vmware.vcenter.ovf.LibraryItem."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.soap import dispatch, ovf_hardware, ovf_manager, ovf_properties, vm_create, vm_rights
from bfinfra.sandbox.soap.ovf_descriptor import parse

EXTRA = {
    "@class": ("com.vmware.vcenter.ovf.extra_config_params",),
    "type?": str,
    "extra_configs?": [{"key?": str, "value?": str, "virtual_system_id?": str}],
}
DEPLOYMENT = {
    "name?": str,
    "annotation?": str,
    "accept_all_EULA": bool,
    "network_mappings?": dict,
    "storage_provisioning?": ("thin", "thick", "eagerZeroedThick"),
    "default_datastore_id?": str,
    "locale?": str,
    "additional_parameters?": [EXTRA],
}
TARGET = {"resource_pool_id": str, "host_id?": str, "folder_id?": str}


@route("POST", "/vcenter/ovf/library-item/{item}", "deploy")
def deploy(call: Call, item: str) -> Any:
    """Deploy a machine; returns it, or why there is none. Raises NOT_FOUND for an unknown item,
    INVALID_ARGUMENT for an invalid one.
    """
    body = check(call.spec, {"target": dict, "deployment_spec": dict})
    target, spec = (
        check(body["target"], TARGET, "target"),
        check(body["deployment_spec"], DEPLOYMENT, "deployment_spec"),
    )
    text = _text(call, item)
    try:
        with call.inventory.lock:
            vm = _made(call, text, target, spec)
    except vim.fault.NoPermission as error:
        raise Refused("UNAUTHORIZED", str(error.msg)) from None
    except (vmodl.MethodFault, vmodl.RuntimeFault) as error:
        return {"succeeded": False, "error": {"errors": [_error(error)], "warnings": [], "information": []}}
    return {"succeeded": True, "resource_id": {"type": "VirtualMachine", "id": vm}}


@route("POST", "/vcenter/ovf/library-item/{item}", "filter")
def summary(call: Call, item: str) -> Any:
    """Return what a user may set when he deploys the item: networks and user-configurable properties."""
    target = check(check(call.spec, {"target": dict})["target"], TARGET, "target")
    for moid in target.values():
        _object(call, moid)
    found = parse(_text(call, item))
    properties = [
        {
            "class_id": each.class_id,
            "id": each.key,
            "instance_id": each.instance_id,
            "category": each.category,
            "ui_optional": False,
            "label": each.label,
            "description": each.description,
            "type": "password" if each.password else each.type,
            "value": "" if each.password else each.value,
        }
        for each in found.properties
        if each.user_configurable
    ]
    params = (
        [
            {
                "@class": "com.vmware.vcenter.ovf.property_params",
                "type": "PropertyParams",
                "properties": properties,
            }
        ]
        if properties
        else []
    )
    return {
        "name": found.name,
        "annotation": found.annotation,
        "EULAs": list(found.eulas),
        "networks": list(found.networks),
        "storage_groups": [],
        "additional_params": params,
    }


def _text(call: Call, item: str) -> str:
    """The descriptor in an item. NOT_FOUND, NOT_ALLOWED_IN_CURRENT_STATE where it holds none."""
    found = call.state.items.get(item)
    if found is None:
        raise missing("The library item", item)
    text = next((str(each["text"]) for each in found["files"].values() if each["text"]), "")
    if not text:
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "The library item holds no OVF descriptor.")
    return text


def _made(call: Call, text: str, target: dict[str, Any], spec: dict[str, Any]) -> str:
    inventory, descriptor = call.inventory, parse(text)
    pool, folder = (_object(call, target[name]) for name in ("resource_pool_id", "folder_id"))
    host = _object(call, target["host_id"]) if "host_id" in target else None
    store, names = (
        _object(call, spec["default_datastore_id"]),
        {name: _object(call, moid).name for name, moid in spec.get("network_mappings", {}).items()},
    )
    if "network_mappings" not in spec:  # "the server will choose"
        names = dict.fromkeys(
            descriptor.networks, next(each.name for each in inventory.networks() if each.kind == "Network")
        )
    if set(descriptor.networks) - set(names):
        raise vim.fault.OvfUnsupportedElementValue(
            lineNumber=1,
            name="Network",
            value=", ".join(descriptor.networks),
            msg="A network of the OVF is not mapped.",
        )
    config = ovf_manager.config_spec(descriptor, spec.get("name") or descriptor.name, store, {})
    config.deviceChange = ovf_hardware.device_changes(
        descriptor, names, thin=spec.get("storage_provisioning") == "thin"
    )
    config.vAppConfig = (
        ovf_properties.vapp_spec(descriptor, {}) if descriptor.products or descriptor.eulas else None
    )
    notes = [
        each for params in spec.get("additional_parameters", []) for each in params.get("extra_configs", [])
    ]
    config.extraConfig = [
        *(config.extraConfig or []),
        *(vim.option.OptionValue(key=each["key"], value=each["value"]) for each in notes),
    ]
    caller: Any = dispatch.Call(inventory, None, call.session, "", "deploy")  # type: ignore[arg-type]  # it opens no sessions
    caller.need("VApp.Import", pool, folder)
    vm_rights.may_create(caller, folder, pool.ref, config)
    return vm_create.make(caller, folder, (pool, host, store), config).moid


def _object(call: Call, moid: str) -> Any:
    found = call.inventory.objects.get(moid)
    if found is None:
        raise missing("The object", moid)
    return found


def _error(error: Any) -> dict[str, Any]:
    words = {
        "id": f"com.vmware.ovf.{type(error).__name__}",
        "default_message": str(error.msg or type(error).__name__),
        "args": [],
    }
    return {
        "category": "SERVER",
        "error": {"@class": "com.vmware.vapi.std.errors.error", "error_type": "ERROR", "messages": [words]},
    }
