"""VM templates as items of content libraries. Source: com.vmware.vcenter.vm_template.LibraryItems."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, vim, vmodl
from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.soap import dispatch, vm_life
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.vm_rights import may_clone

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

PATH = "/vcenter/vm-template/library-items"
PLACEMENT = {"folder?": str, "resource_pool?": str, "host?": str, "cluster?": str}
STORAGE = {"datastore?": str, "storage_policy?": dict}
CREATE = {
    "source_vm": str,
    "name": str,
    "description?": str,
    "library": str,
    "vm_home_storage?": STORAGE,
    "disk_storage?": STORAGE,
    "placement?": PLACEMENT,
}
SIZES = {"cpu_update?": {"num_cpus?": int, "num_cores_per_socket?": int}, "memory_update?": {"memory?": int}}
DEPLOY = {
    "name": str,
    "description?": str,
    "vm_home_storage?": STORAGE,
    "disk_storage?": STORAGE,
    "placement?": PLACEMENT,
    "powered_on?": bool,
    "hardware_customization?": SIZES,
}
CARD = vim.vm.device.VirtualEthernetCard


@route("GET", PATH + "/{item}")
def info(call: Call, item: str) -> Any:
    """Return the description of the template; empty where the item holds none."""
    template = _template(call, item)
    if template is None:
        return None
    config, store = template["config"], moid(template["datastore"][0])
    devices = config.hardware.device
    disks = [each for each in devices if isinstance(each, vim.vm.device.VirtualDisk)]
    return {
        "guest_OS": re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "_", config.guestId.removesuffix("Guest")).upper(),
        "vm_template": template.moid,
        "cpu": {"count": config.hardware.numCPU, "cores_per_socket": config.hardware.numCoresPerSocket or 1},
        "memory": {"size_MiB": config.hardware.memoryMB},
        "vm_home_storage": {"datastore": store},
        "disks": {
            str(each.key): {"capacity": each.capacityInBytes, "disk_storage": {"datastore": store}}
            for each in disks
        },
        "nics": {
            str(each.key): {"backing_type": "STANDARD_PORTGROUP", "mac_type": "ASSIGNED"}
            for each in devices
            if isinstance(each, CARD)
        },
    }


@route("POST", PATH)
def create(call: Call) -> Any:
    """A template like the machine, as a new item; its id."""
    spec = check(call.spec, CREATE)
    call.need("ContentLibrary.AddLibraryItem", spec["name"])
    with call.state.lock:
        if spec["library"] not in call.state.libraries:
            raise missing("The library", spec["library"])
        template, identity, now = (
            _cloned(call, spec["source_vm"], spec, vim.vm.CloneSpec(template=True)),
            str(uuid.uuid4()),
            moment(call.inventory),
        )
        template["resourcePool"] = None
        call.state.items[identity] = {
            "description": spec.get("description", ""),
            "type": "vm-template",
            "library_id": spec["library"],
            "name": spec["name"],
            "id": identity,
            "creation_time": now,
            "last_modified_time": now,
            "content_version": "1",
            "metadata_version": "1",
            "version": "1",
            "cached": True,
            "size": 0,
            "files": {},
            "template": template.moid,
        }
    return identity


@route("POST", PATH + "/{item}", "deploy")
def deploy(call: Call, item: str) -> Any:
    """A machine of the template, its sizes as asked; its id."""
    spec = check(call.spec, DEPLOY)
    template = _template(call, item)
    if template is None:
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "The library item holds no virtual machine template.")
    sizes = spec.get("hardware_customization", {})
    config = vim.vm.ConfigSpec(
        numCPUs=sizes.get("cpu_update", {}).get("num_cpus"),
        memoryMB=sizes.get("memory_update", {}).get("memory"),
        annotation=spec.get("description"),
    )
    return _cloned(
        call, template.moid, spec, vim.vm.CloneSpec(config=config, powerOn=spec.get("powered_on", False))
    ).moid


def _cloned(call: Call, source: str, spec: dict[str, Any], how: Any) -> Managed:
    placement, inventory = spec.get("placement", {}), call.inventory
    home = spec.get("vm_home_storage", {}).get("datastore")
    origin = _object(call, source)
    pool = placement.get("resource_pool") or (
        moid(_object(call, placement["cluster"])["resourcePool"]) if "cluster" in placement else None
    )
    how.location = vim.vm.RelocateSpec(
        **{
            name: _object(call, moid).ref
            for name, moid in (("pool", pool), ("host", placement.get("host")), ("datastore", home))
            if moid
        }
    )
    caller: Any = dispatch.Call(inventory, None, call.session, "", "deploy")  # type: ignore[arg-type]  # it opens no sessions
    folder = _object(call, placement["folder"]) if "folder" in placement else inventory.get(origin.parent)
    try:
        with inventory.lock:
            may_clone(caller, origin, folder, how)
            name = check_name(inventory, folder, spec["name"])
            return vm_life.cloned(caller, origin, folder, name, how)
    except vim.fault.NoPermission as error:
        raise Refused("UNAUTHORIZED", str(error.msg)) from None
    except vim.fault.DuplicateName as error:
        raise Refused("ALREADY_EXISTS", str(error.msg)) from None
    except (vmodl.MethodFault, vmodl.RuntimeFault) as error:
        raise Refused("INVALID_ARGUMENT", str(error.msg)) from None


def _template(call: Call, item: str) -> Managed | None:
    found = call.state.items.get(item)
    if found is None:
        raise missing("The library item", item)
    return call.inventory.objects.get(found.get("template", ""))


def _object(call: Call, moid: str) -> Any:
    found = call.inventory.objects.get(moid)
    if found is None:
        raise missing("The object", moid)
    return found
