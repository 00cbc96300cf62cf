"""Supervisor namespaces. Source: com.vmware.vcenter.namespaces.Instances."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.settling import Configuring, configured
from bfinfra.sandbox.rest.shapes import check
from bfinfra.sandbox.rest.state import RestState
from bfinfra.sandbox.rest.zones import ZONES, supervisor_id, with_zones, zoned, zones_there

PATH = "/vcenter/namespaces/instances"
QUOTAS = (
    "memory_limit",
    "memory_limit_default",
    "memory_request_default",
    "cpu_limit",
    "cpu_limit_default",
    "cpu_request_default",
    "storage_request_limit",
    "pod_count",
    "service_count",
    "deployment_count",
    "daemon_set_count",
    "replica_set_count",
    "replication_controller_count",
    "stateful_set_count",
    "config_map_count",
    "secret_count",
    "persistent_volume_claim_count",
    "job_count",
)
QUOTA = {f"{name}?": int for name in QUOTAS}
QUOTA_UPDATE = {**QUOTA, **{f"{name}_unset?": bool for name in QUOTAS}}
ACCESS = {
    "subject_type": ("USER", "GROUP"),
    "subject": str,
    "domain": str,
    "role": ("OWNER", "EDIT", "VIEW"),
    "identity_provider?": str,
}
SETTABLE = {
    "description?": str,
    "resource_spec?": QUOTA,
    "access_list?": [ACCESS],
    "storage_specs?": [{"policy": str, "limit?": int}],
    "vm_service_spec?": {"content_libraries?": [str], "vm_classes?": [str]},
    "content_libraries?": [
        {"content_library": str, "writable?": bool, "allow_import?": bool, "resource_naming_strategy?": str}
    ],
}
CREATE = {
    **SETTABLE,
    "cluster": str,
    "namespace": str,
    "networks?": [str],
    "creator?": {"subject": str, "domain": str},
    "namespace_network?": dict,
}
CREATE_V2 = {
    **{name: each for name, each in CREATE.items() if name not in ("cluster", "networks?")},
    "supervisor": str,
    "network_spec?": dict,
}
UPDATE = {**SETTABLE, "resource_spec?": QUOTA_UPDATE}
EMPTY: dict[str, Any] = {
    "description": "",
    "resource_spec": {},
    "access_list": [],
    "storage_specs": [],
    "vm_service_spec": {"content_libraries": [], "vm_classes": []},
}
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PRIVILEGE = "Namespaces.Configure"
NAMESPACE = Configuring(
    lambda state: state.namespaces,
    "ConfigureNamespace",
    "vcenter.wcp.namespace.configure.failed",
    lambda state, name: state.notify(name),
    {},
    {},
)


@route("GET", PATH)
def listed(call: Call) -> Any:
    """All namespaces, in short."""
    with call.state.lock:
        return [
            {
                "namespace": name,
                **{key: info[key] for key in ("cluster", "description", "config_status", "stats")},
            }
            for name, info in call.state.namespaces.items()
        ]


@route("GET", PATH + "/v2")
def listed_v2(call: Call) -> Any:
    """All namespaces by supervisor, in short."""
    return [
        {
            **{key: value for key, value in each.items() if key != "cluster"},
            "supervisor": supervisor_id(call.state, each["cluster"]),
        }
        for each in listed(call)
    ]


@route("GET", PATH + "/{namespace}")
def get(call: Call, namespace: str) -> Any:
    """One namespace."""
    with call.state.lock:
        return answered(one(call.state, namespace))


@route("GET", PATH + "/v2/{namespace}")
def get_v2(call: Call, namespace: str) -> Any:
    """One namespace, by supervisor."""
    info = get(call, namespace)
    return {
        **{key: value for key, value in info.items() if key not in ("cluster", "networks")},
        "supervisor": supervisor_id(call.state, info["cluster"]),
        **(
            {
                "zones": [
                    {"zone": each["name"], "type": "MANAGEMENT", "marked_for_removal": False}
                    for each in zones_there(call.state, call.state.namespaces[namespace])
                ]
            }
            if zoned(call)
            else {}
        ),
    }


@route("POST", PATH)
def create(call: Call) -> None:
    """A new namespace; CONFIGURING until it runs."""
    spec = check(call.spec, CREATE)
    call.need(PRIVILEGE, spec["cluster"], spec["cluster"])
    _create(call, spec)


@route("POST", PATH + "/v2")
def create_v2(call: Call) -> None:
    """The same, by supervisor."""
    spec = check(call.spec, {**CREATE_V2, **(ZONES if zoned(call) else {})})
    home = next(
        (each for each in call.state.supervisors() if supervisor_id(call.state, each) == spec["supervisor"]),
        None,
    )
    if home is None:
        raise missing("The Supervisor", spec["supervisor"])
    call.need(PRIVILEGE, home, home)
    _create(
        call,
        {
            **{key: value for key, value in spec.items() if key not in ("supervisor", "network_spec")},
            "cluster": home,
        },
    )


@route("PUT", PATH + "/{namespace}")
def replace(call: Call, namespace: str) -> None:
    """Set all that can be set; what isn't given is cleared."""
    may_configure(call, namespace)
    spec = check(call.spec, SETTABLE)
    change(call, namespace, lambda _: {**EMPTY, "content_libraries": [], **spec})


@route("PATCH", PATH + "/{namespace}")
def update(call: Call, namespace: str) -> None:
    """Change what is given; lists are replaced whole, limits one by one."""
    may_configure(call, namespace)
    spec = check(call.spec, {**UPDATE, **(ZONES if zoned(call) else {})})
    change(
        call,
        namespace,
        lambda info: {
            **spec,
            **with_zones(call, info, spec),
            "resource_spec": _quota(info["resource_spec"], spec.get("resource_spec", {})),
        },
    )


@route("DELETE", PATH + "/{namespace}")
def delete(call: Call, namespace: str) -> None:
    """Remove one and all that is in it; its status is REMOVING until then."""
    may_configure(call, namespace)
    with call.state.lock:
        info = one(call.state, namespace)
        if info["config_status"] == "REMOVING":
            return
        call.state.namespaces[namespace] = {**info, "config_status": "REMOVING"}
    resume(call.state, namespace)


@route("GET", "/vcenter/namespaces-user/namespaces")
def of_user(call: Call) -> Any:
    """The namespaces that the caller may use."""
    supervisors = call.state.supervisors()
    with call.state.lock:
        return [
            {"namespace": name, "master_host": supervisors[info["cluster"]][1].address}
            for name, info in call.state.namespaces.items()
            if info["config_status"] == "RUNNING" and _may_use(call.session.user, info)
        ]


def answered(info: dict[str, Any]) -> dict[str, Any]:
    """A namespace as vCenter's API shows it: with limits and networks if they were set."""
    return {
        name: value
        for name, value in info.items()
        if name != "zones" and (value or name not in ("resource_spec", "networks"))
    }


def one(state: RestState, name: str) -> dict[str, Any]:
    """The record of a namespace. Raises Refused (NOT_FOUND)."""
    found = state.namespaces.get(name)
    if found is None:
        raise missing("Namespace", name)
    return found


def resume(state: RestState, name: str) -> None:
    """Continue with a namespace that is not ready; report one that is to the supervisor."""
    with state.lock:
        status = state.namespaces[name]["config_status"]
    if status == "CONFIGURING":
        state.clock.after(state.world.durations["namespace"], lambda: configured(state, name, NAMESPACE))
    elif status == "REMOVING":
        state.clock.after(state.world.durations["delete"], lambda: _removed(state, name))
    elif status == "RUNNING":
        state.notify(name)


def _create(call: Call, spec: dict[str, Any]) -> None:
    state, name = call.state, spec.pop("namespace")
    if not LABEL.fullmatch(name) or name.startswith(("vmware-system", "kube-")):
        raise Refused("INVALID_ARGUMENT", f"spec.namespace: {name[:80]!r} is no DNS label, or a reserved one")
    if spec["cluster"] not in state.supervisors():
        raise missing("The Supervisor on cluster", spec["cluster"])
    if state.enabled.get(spec["cluster"], {}).get("config_status", "RUNNING") != "RUNNING":
        raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", "The Supervisor does not run.")
    _check_names(call, spec)
    spec |= with_zones(call, spec | {"zones": []}, spec)
    if spec.get("networks") and state.supervisors()[spec["cluster"]][1].network_provider != "VSPHERE_NETWORK":
        raise Refused("INVALID_ARGUMENT", "spec.networks: must be unset with NSX networking")
    with state.lock:
        if name in state.namespaces:
            raise Refused("ALREADY_EXISTS", f"Namespace '{name}' already exists.")
        state.namespaces[name] = {
            "config_status": "CONFIGURING",
            "messages": [],
            "stats": {"cpu_used": 0, "memory_used": 0, "storage_used": 0},
            **EMPTY,
            "networks": [],
            "self_service_namespace": False,
            **{key: value for key, value in spec.items() if key != "namespace_network"},
        }
    resume(state, name)


def change(call: Call, name: str, fields: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Set the fields that `fields` returns for the present namespace. Raises Refused if it is deleted or
    being deleted, or if they name what does not exist.
    """
    with call.state.lock:
        info = one(call.state, name)
        if info["config_status"] == "REMOVING":
            raise Refused("NOT_ALLOWED_IN_CURRENT_STATE", f"Namespace '{name}' is being removed.")
        spec = fields(info)
        _check_names(call, spec)
        call.state.namespaces[name] = {**info, **spec}
    if info["config_status"] == "RUNNING":
        call.state.notify(name)


def _check_names(call: Call, spec: dict[str, Any]) -> None:
    """Check that everything the spec names exists, and that its limits are valid."""
    machines = spec.get("vm_service_spec", {})
    subjects = [
        (each["subject_type"], each["subject"], each["domain"]) for each in spec.get("access_list", [])
    ]
    named = (
        (
            "storage_specs.policy",
            [each["policy"] for each in spec.get("storage_specs", [])],
            call.state.policies(),
        ),
        ("vm_service_spec.vm_classes", machines.get("vm_classes", []), call.state.vm_classes),
        ("vm_service_spec.content_libraries", machines.get("content_libraries", []), call.state.libraries),
        (
            "access_list.subject",
            [f"{subject}@{domain}" for _, subject, domain in subjects],
            _identities(call.state),
        ),
    )
    for field, names, there in named:
        if unknown := [name for name in names if name not in there]:
            raise Refused("INVALID_ARGUMENT", f"spec.{field}: there is no {', '.join(unknown)}")
    if len(set(subjects)) != len(subjects):
        raise Refused("INVALID_ARGUMENT", "spec.access_list: a subject stands in it twice")
    if any(
        value < (10 if name == "cpu_limit" else 0) for name, value in spec.get("resource_spec", {}).items()
    ):
        raise Refused(
            "INVALID_ARGUMENT", "spec.resource_spec: a limit is too small; cpu_limit is at least 10 MHz"
        )


def _identities(state: RestState) -> set[str]:
    return {*state.world.groups, *(user.name for user in state.world.users)}


def _quota(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    lifted = {name.removesuffix("_unset") for name, value in new.items() if name.endswith("_unset") and value}
    kept = {name: value for name, value in old.items() if name not in lifted}
    return {**kept, **{name: value for name, value in new.items() if not name.endswith("_unset")}}


def may_configure(call: Call, namespace: str) -> None:
    """UNAUTHORIZED where the caller may not configure the namespace: the right is asked on its cluster."""
    with call.state.lock:
        home = call.state.namespaces.get(namespace, {}).get("cluster", "")
    call.need(PRIVILEGE, namespace, home)


def _may_use(user: Any, info: dict[str, Any]) -> bool:
    mine = {user.name, *user.groups}
    return user.role == "admin" or any(
        f"{each['subject']}@{each['domain']}" in mine for each in info["access_list"]
    )


def _removed(state: RestState, name: str) -> None:
    with state.lock:
        info = state.namespaces.get(name)
        if info is None or info["config_status"] != "REMOVING":
            return
        del state.namespaces[name]
    state.notify(name)
