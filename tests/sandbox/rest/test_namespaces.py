"""Namespaces live, change and go as vCenter's do."""

from __future__ import annotations

from typing import Any

import pytest
from asking import Rest, control, generated
from namespace_specs import full, made, policy, supervisor
from waiting import until

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

PATH = "/api/vcenter/namespaces/instances"


def test_a_namespace_is_configuring_until_it_runs(rest: Rest, world: Running) -> None:
    control(world, "POST", "/pace", {"pace": 1000})
    try:
        assert rest.call("POST", PATH, full(rest)).status == 204
        assert rest.get(f"{PATH}/ns")["config_status"] == "CONFIGURING"
        assert rest.get("/api/vcenter/namespaces-user/namespaces") == []
    finally:
        control(world, "POST", "/pace", {"pace": 0})


def test_a_fault_rule_makes_it_fail_with_its_message(rest: Rest, world: Running) -> None:
    control(
        world,
        "POST",
        "/faults",
        {
            "api": "rest",
            "method": "ConfigureNamespace",
            "object": "ns",
            "do": {"message": "no IP addresses left"},
        },
    )
    rest.call("POST", PATH, full(rest))
    info = until(lambda: (found := rest.get(f"{PATH}/ns"))["config_status"] == "ERROR" and found)
    assert info["messages"][0]["details"]["default_message"] == "no IP addresses left"


def test_patch_changes_limits_one_by_one_and_lists_whole(rest: Rest) -> None:
    made(rest)
    change = {
        "resource_spec": {"cpu_limit_unset": True, "memory_limit": 4096},
        "storage_specs": [{"policy": policy(rest, "silver")}],
    }
    assert rest.call("PATCH", f"{PATH}/ns", change).status == 204
    info = rest.get(f"{PATH}/ns")
    assert info["resource_spec"] == {"memory_limit": 4096, "pod_count": 3}
    assert info["storage_specs"] == [{"policy": policy(rest, "silver")}]
    assert (info["description"], len(info["access_list"])) == ("for tests", 1)


def test_put_clears_what_it_does_not_name(rest: Rest) -> None:
    made(rest)
    assert rest.call("PUT", f"{PATH}/ns", {"description": "new"}).status == 204
    info = rest.get(f"{PATH}/ns")
    assert (info["description"], info["access_list"], info["storage_specs"]) == ("new", [], [])
    assert not info.keys() & {"resource_spec", "networks", "creator"}, "a real one leaves out what nobody set"


def test_a_deleted_namespace_is_not_found_in_the_end_and_can_be_made_again(rest: Rest) -> None:
    made(rest)
    assert rest.call("DELETE", f"{PATH}/ns").status == 204
    until(lambda: rest.call("GET", f"{PATH}/ns").status == 404)
    assert rest.call("DELETE", f"{PATH}/ns").data["error_type"] == "NOT_FOUND"
    made(rest)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"namespace": "Not_A_Label"}, "INVALID_ARGUMENT"),
        ({"namespace": "vmware-system-x"}, "INVALID_ARGUMENT"),
        ({"cluster": "domain-c999"}, "NOT_FOUND"),
        ({"colour": "red"}, "INVALID_ARGUMENT"),
        ({"description": 7}, "INVALID_ARGUMENT"),
        ({"storage_specs": [{"policy": "none"}]}, "INVALID_ARGUMENT"),
        ({"vm_service_spec": {"vm_classes": ["huge"]}}, "INVALID_ARGUMENT"),
        ({"resource_spec": {"cpu_limit": 1}}, "INVALID_ARGUMENT"),
        ({"resource_spec": {"gpu_limit": 1}}, "INVALID_ARGUMENT"),
        (
            {
                "access_list": [
                    {"subject_type": "USER", "subject": "ghost", "domain": "small.test", "role": "EDIT"}
                ]
            },
            "INVALID_ARGUMENT",
        ),
        (
            {
                "access_list": [
                    {"subject_type": "USER", "subject": "dev", "domain": "small.test", "role": "KING"}
                ]
            },
            "INVALID_ARGUMENT",
        ),
        ({"networks": ["net"]}, "INVALID_ARGUMENT"),
    ],
)
def test_a_wrong_namespace_is_refused_in_vapi_s_words(change: dict[str, Any], kind: str, rest: Rest) -> None:
    answer = rest.call("POST", PATH, {**full(rest), **change})
    assert answer.data["error_type"] == kind
    assert answer.data["messages"][0]["default_message"]
    assert rest.get(PATH) == []


def test_the_same_name_twice_already_exists(rest: Rest) -> None:
    made(rest)
    answer = rest.call("POST", PATH, full(rest))
    assert (answer.status, answer.data["error_type"]) == (400, "ALREADY_EXISTS")


def test_access_is_given_changed_and_taken_one_by_one(rest: Rest) -> None:
    made(rest)
    path = f"{PATH}/ns/access/small.test/dev?type=USER"
    assert rest.call("GET", path).status == 404
    assert rest.call("POST", path, {"role": "VIEW"}).status == 204
    assert rest.call("POST", path, {"role": "VIEW"}).data["error_type"] == "ALREADY_EXISTS"
    assert rest.call("PUT", path, {"role": "OWNER"}).status == 204
    assert rest.get(path)["role"] == "OWNER"
    assert len(rest.get(f"{PATH}/ns")["access_list"]) == 2
    assert rest.call("DELETE", path).status == 204
    assert rest.call("DELETE", path).status == 404


def test_users_see_their_namespaces_and_change_none_without_the_privilege(rest: Rest, world: Running) -> None:
    made(rest)
    control(world, "DELETE", "/tally")
    reader = Rest(world, "reader@small.test", generated(world, "reader@small.test"))
    developer = Rest(world, "dev@small.test", generated(world, "dev@small.test"))
    assert reader.get("/api/vcenter/namespaces-user/namespaces") == []
    assert developer.get("/api/vcenter/namespaces-user/namespaces") == [
        {"namespace": "ns", "master_host": "10.1.0.1"}
    ]
    answer = developer.call("DELETE", f"{PATH}/ns")
    assert (answer.status, answer.data["error_type"]) == (403, "UNAUTHORIZED")
    assert "Namespaces.Configure" in answer.data["messages"][0]["default_message"]


def test_a_restart_keeps_namespaces_and_ends_sessions(own: Running) -> None:
    rest = Rest(own)
    made(rest)
    before = control(own, "GET", "/world").data
    stop(own.state)
    again = start(SMALL_WORLD, own.state)
    fresh = Rest(again)
    assert fresh.raw("GET", PATH, headers={"vmware-api-session-id": rest.token}).status == 401
    assert [each["namespace"] for each in fresh.get(PATH)] == ["ns"]
    assert control(again, "GET", "/world").data == before
    assert supervisor(fresh)
