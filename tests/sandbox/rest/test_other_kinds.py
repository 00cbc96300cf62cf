"""VM classes, libraries, lookups, sessions and what isn't there."""

from __future__ import annotations

import io
import ssl
import zipfile
from typing import Any

from asking import Rest, basic, control
from namespace_specs import made

from bfinfra.sandbox import Running

CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"


def backings(found: dict[str, Any]) -> list[Any]:
    """Of a vCenter since 8.0.2, which says devices in no other way."""
    assert found["devices"] is None
    return [each["device"]["backing"] for each in found["config_spec"]["deviceChange"]]


def test_classes_are_made_changed_and_removed(rest: Rest) -> None:
    assert rest.call("POST", CLASSES, {"id": "gpu", "cpu_count": 4, "memory_MB": 8192}).status == 204
    assert (
        rest.call("POST", CLASSES, {"id": "gpu", "cpu_count": 4, "memory_MB": 8192}).data["error_type"]
        == "ALREADY_EXISTS"
    )
    assert (
        rest.call("PATCH", f"{CLASSES}/gpu", {"devices": {"vgpu_devices": [{"profile_name": "grid"}]}}).data[
            "error_type"
        ]
        == "INVALID_ARGUMENT"
    )
    change = {"memory_reservation": 100, "devices": {"vgpu_devices": [{"profile_name": "grid_v100dx-32q"}]}}
    assert rest.call("PATCH", f"{CLASSES}/gpu", change).status == 204
    assert backings(rest.get(f"{CLASSES}/gpu")) == [
        {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": "grid_v100dx-32q"}
    ]
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"cpu_count": 2}).status == 204
    assert len(backings(rest.get(f"{CLASSES}/gpu"))) == 1
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"devices": {"vgpu_devices": []}}).status == 204
    assert backings(rest.get(f"{CLASSES}/gpu")) == []
    assert rest.call("DELETE", f"{CLASSES}/gpu").status == 204
    assert rest.call("GET", f"{CLASSES}/gpu").status == 404


def test_a_class_in_use_stays(rest: Rest) -> None:
    made(rest)
    assert rest.get(f"{CLASSES}/best-effort-small")["namespaces"] == ["ns"]
    assert rest.call("DELETE", f"{CLASSES}/best-effort-small").data["error_type"] == "RESOURCE_IN_USE"


def test_libraries_are_made_found_and_removed(rest: Rest) -> None:
    store = rest.get("/api/vcenter/datastore")[0]["datastore"]
    spec = {"name": "isos", "storage_backings": [{"type": "DATASTORE", "datastore_id": store}]}
    answer = rest.call("POST", "/api/content/local-library", {**spec, "type": "LOCAL"})
    assert answer.status == 201
    assert rest.call("POST", "/api/content/local-library", spec).data["error_type"] == "ALREADY_EXISTS"
    assert rest.call("POST", "/api/content/library?action=find", {"name": "isos"}).data == [answer.data]
    assert rest.call("GET", f"/api/content/subscribed-library/{answer.data}").status == 404
    assert rest.call("DELETE", f"/api/content/local-library/{answer.data}").status == 204
    subscribed = {
        **spec,
        "type": "SUBSCRIBED",
        "subscription_info": {"subscription_url": "https://x.test/lib.json", "password": "secret"},
    }
    made_one = rest.call("POST", "/api/content/subscribed-library", subscribed).data
    assert "password" not in rest.get(f"/api/content/subscribed-library/{made_one}")["subscription_info"]
    assert rest.call("POST", f"/api/content/subscribed-library/{made_one}?action=sync").status == 204


def test_lookups_filter_by_name_id_and_place(rest: Rest) -> None:
    farm = rest.get("/api/vcenter/cluster?names=farm")[0]["cluster"]
    assert [each["name"] for each in rest.get(f"/api/vcenter/host?clusters={farm}")] == ["esx1.small.test"]
    assert [each["name"] for each in rest.get("/api/vcenter/datastore?names=local&names=shared")] == [
        "local",
        "shared",
    ]
    assert [each["name"] for each in rest.get("/api/vcenter/folder?type=VIRTUAL_MACHINE")] == ["vm"]
    assert rest.get(f"/api/vcenter/resource-pool?clusters={farm}")[0]["name"] == "Resources"
    assert rest.call("GET", "/api/vcenter/vm?colours=red").data["error_type"] == "INVALID_ARGUMENT"


def test_the_older_rest_wraps_answers_in_value(rest: Rest, world: Running) -> None:
    answer = rest.raw(
        "POST",
        "/rest/com/vmware/cis/session",
        headers=basic("admin@small.test", world.env["VCENTER_PASSWORD"]),
    )
    key = {"vmware-api-session-id": answer.data["value"]}
    assert (
        rest.raw("GET", "/rest/vcenter/host?filter.names.1=esx1.small.test", headers=key).data["value"][0][
            "name"
        ]
        == "esx1.small.test"
    )
    library = rest.raw("GET", "/rest/com/vmware/content/library", headers=key).data["value"][0]
    assert (
        rest.raw("GET", f"/rest/com/vmware/content/library/id:{library}", headers=key).data["value"]["name"]
        == "tkr"
    )
    missing = rest.raw("GET", "/rest/vcenter/cluster/domain-c999", headers=key)
    assert (missing.status, missing.data["type"]) == (404, "com.vmware.vapi.std.errors.not_found")
    assert rest.raw("DELETE", "/rest/com/vmware/cis/session", headers=key).status == 200
    assert rest.raw("GET", "/rest/vcenter/host", headers=key).status == 401


def test_sessions_open_end_and_expire(rest: Rest, world: Running) -> None:
    assert control(world, "GET", "/sessions").data["rest"] == ["admin@small.test"]
    control(world, "POST", "/expire")
    answer = rest.call("GET", "/api/vcenter/host")
    assert (answer.status, answer.data["error_type"]) == (401, "UNAUTHENTICATED")
    assert "SIGN" in answer.headers["www-authenticate"]
    again = Rest(world)
    assert again.call("DELETE", "/api/session").status == 204
    assert again.call("DELETE", "/api/session").status == 401
    assert rest.raw("POST", "/api/session", headers=basic("admin@small.test", "wrong")).status == 401


def test_what_is_not_there_is_refused_by_name(rest: Rest) -> None:
    answer = rest.call("POST", "/api/vcenter/tagging/associations?action=attach")
    assert (answer.status, answer.data["error_type"]) == (404, "OPERATION_NOT_FOUND")
    assert (
        "POST /api/vcenter/tagging/associations?action=attach"
        in answer.data["messages"][0]["default_message"]
    )


def test_the_roots_can_be_downloaded_by_everybody(rest: Rest) -> None:
    archive = zipfile.ZipFile(io.BytesIO(rest.raw("GET", "/certs/download.zip").data))
    names = [name for name in archive.namelist() if name.startswith("certs/lin/") and name.endswith(".0")]
    context = ssl.create_default_context(cadata=archive.read(names[0]).decode())
    assert len(context.get_ca_certs()) == 1
