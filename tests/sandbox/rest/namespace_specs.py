"""Namespaces for the tests of REST."""

from __future__ import annotations

from typing import Any

from asking import Rest
from judge import misfits, namespaces_client
from waiting import until


def supervisor(rest: Rest) -> str:
    return str(rest.get("/api/vcenter/namespace-management/clusters")[0]["cluster"])


def policy(rest: Rest, name: str = "gold") -> str:
    return next(
        str(each["policy"]) for each in rest.get("/api/vcenter/storage/policies") if each["name"] == name
    )


def full(rest: Rest) -> dict[str, Any]:
    """A namespace with everything set."""
    return {
        "cluster": supervisor(rest),
        "namespace": "ns",
        "description": "for tests",
        "resource_spec": {"cpu_limit": 1000, "memory_limit": 2048, "pod_count": 3},
        "storage_specs": [{"policy": policy(rest), "limit": 1024}, {"policy": policy(rest, "silver")}],
        "access_list": [{"subject_type": "GROUP", "subject": "devs", "domain": "small.test", "role": "EDIT"}],
        "vm_service_spec": {
            "vm_classes": ["best-effort-small"],
            "content_libraries": rest.get("/api/content/library"),
        },
    }


def made(rest: Rest, **changes: Any) -> dict[str, Any]:
    """The namespace, running."""
    spec = {**full(rest), **changes}
    assert misfits(namespaces_client.Instances.CreateSpec, spec) == []
    answer = rest.call("POST", "/api/vcenter/namespaces/instances", spec)
    assert (answer.status, answer.data) == (204, b"")
    path = f"/api/vcenter/namespaces/instances/{spec['namespace']}"
    return until(lambda: (info := rest.get(path))["config_status"] == "RUNNING" and info)
