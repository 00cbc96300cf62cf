"""A token's files in a pod are for its container's user alone."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.cluster.workload.token import attach, attach_as_before

TOKEN = {"s": ("ca.crt", "client.yaml", "servers.conf")}


def attached(pod: dict[str, Any] | None = None, **container: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod, and its container, with a token."""
    own: dict[str, Any] = {"name": "a", "image": "busybox", **container}
    made: dict[str, Any] = {"containers": [own], **(pod or {})}
    attach(made, own, TOKEN, "/home/ann/", "Pod/p")
    return made, own


def mode(pod: dict[str, Any]) -> int:
    (found,) = (each["projected"]["defaultMode"] for each in pod["volumes"] if "projected" in each)
    return int(found)


def test_a_token_file_is_readable_by_its_owner_only() -> None:
    assert mode(attached()[0]) == 0o400


@pytest.mark.parametrize("security", [{"runAsUser": 0}, {"runAsNonRoot": False}, {"fsGroup": 5}])
def test_a_user_who_is_root_reads_a_token_file_as_its_owner(security: dict[str, Any]) -> None:
    assert mode(attached({"securityContext": security})[0]) == 0o400
    assert mode(attached(securityContext=security)[0]) == 0o400


@pytest.mark.parametrize("security", [{"runAsUser": 1000}, {"runAsNonRoot": True}])
def test_another_user_than_the_files_owner_can_read_them(security: dict[str, Any]) -> None:
    assert mode(attached({"securityContext": security})[0]) == 0o444
    assert mode(attached(securityContext=security)[0]) == 0o444
    assert mode(attached({"securityContext": security}, securityContext={"runAsUser": 0})[0]) == (
        0o444 if "runAsNonRoot" in security else 0o400
    ), "the container's own user counts"


def test_the_copy_of_the_access_file_is_its_users_alone_and_in_memory_only() -> None:
    pod, _ = attached()
    (copying,) = pod["initContainers"]
    assert copying["command"][-1].endswith("&& chmod 600 /bitfusion-client/client.yaml")
    (copy,) = (each for each in pod["volumes"] if "emptyDir" in each)
    assert copy["emptyDir"]["medium"] == "Memory"


def test_a_container_changes_no_file_of_the_token_itself() -> None:
    pod, container = attached()
    assert [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")] == [
        "/home/ann/.bitfusion"
    ]
    (copying,) = pod["initContainers"]
    assert copying["volumeMounts"][0] == {
        "name": "bitfusion-token",
        "mountPath": "/bitfusion-token",
        "readOnly": True,
    }


def test_a_pod_of_an_earlier_release_keeps_its_files_from_others() -> None:
    container: dict[str, Any] = {"name": "a"}
    pod: dict[str, Any] = {"containers": [container]}
    attach_as_before(pod, container, TOKEN)
    assert mode(pod) == 0o640
    assert container["volumeMounts"][0]["readOnly"]
