"""Storage policies. Source: com.vmware.vcenter.storage.policies."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.rest.routes import Call, route


@route("GET", "/vcenter/storage/policies")
def policies(call: Call) -> Any:
    """All of them, or those of ?policies=."""
    call.need("StorageProfile.View", "the vCenter server")
    found = [
        {"policy": identity, "name": name, "description": each.description}
        for identity, (name, each) in call.state.policies().items()
    ]
    return [each for each in found if each["policy"] in call.query.get("policies", [each["policy"]])]
