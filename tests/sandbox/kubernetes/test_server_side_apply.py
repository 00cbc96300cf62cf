"""Server-side apply, compared with what a kube-apiserver 1.36 did with the same calls."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

HOME = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def apply(
    http: httpx2.Client, path: str, body: Any, manager: str = "m", *, force: bool = False
) -> httpx2.Response:
    query = {"fieldManager": manager, **({"force": "true"} if force else {})}
    return http.patch(
        path, params=query, content=json.dumps(body), headers={"content-type": "application/apply-patch+yaml"}
    )


def settings(data: dict[str, Any] | None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", **metadata},
        **({"data": data} if data is not None else {}),
    }


def put(
    http: httpx2.Client,
    data: dict[str, Any] | None,
    manager: str = "m",
    *,
    force: bool = False,
    **metadata: Any,
) -> httpx2.Response:
    return apply(http, f"{HOME}/configmaps/c", settings(data, **metadata), manager, force=force)


def deployment(**container: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "b", **container}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def owners(thing: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{each['manager']} {each['operation']}": each["fieldsV1"]
        for each in thing["metadata"].get("managedFields", [])
    }


def test_an_apply_creates_with_201_and_repeats_with_200_and_no_new_version(http: httpx2.Client) -> None:
    first = put(http, {"k": "v"}, labels={"a": "b"})
    again = put(http, {"k": "v"}, labels={"a": "b"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert owners(first.json()) == {
        "m Apply": {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:a": {}}}}
    }


def test_another_manager_conflicts_and_gets_the_fields(http: httpx2.Client) -> None:
    put(http, {"k": "v"}, labels={"a": "b"})
    answer = put(http, {"k": "w"}, "n", labels={"a": "c"})
    assert answer.status_code == 409
    assert (
        answer.json()["message"]
        == 'Apply failed with 2 conflicts: conflicts with "m":\n- .data.k\n- .metadata.labels.a'
    )
    assert answer.json()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".data.k"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".metadata.labels.a"},
    ]


def test_an_updater_is_named_with_its_version(http: httpx2.Client) -> None:
    http.post(f"{HOME}/configmaps", json=settings({"k": "v"}))
    assert (
        put(http, {"k": "w"}).json()["message"]
        == 'Apply failed with 1 conflict: conflict with "curl" using v1: .data.k'
    )


def test_force_takes_the_field_over(http: httpx2.Client) -> None:
    put(http, {"k": "v", "mine": "1"})
    taken = put(http, {"k": "w"}, "n", force=True).json()
    assert taken["data"] == {"k": "w", "mine": "1"}
    assert owners(taken) == {"m Apply": {"f:data": {"f:mine": {}}}, "n Apply": {"f:data": {"f:k": {}}}}


def test_equal_values_are_owned_together_and_go_with_the_last_owner(http: httpx2.Client) -> None:
    put(http, {"k": "v"})
    put(http, {"k": "v"}, "n")
    assert put(http, {}).json()["data"] == {"k": "v"}
    assert "data" not in put(http, {}, "n").json()


def test_a_field_no_longer_applied_goes_unless_others_own_it(http: httpx2.Client) -> None:
    put(http, {"a": "1", "b": "2"})
    put(http, {"z": "3"}, "n")
    assert put(http, {"a": "1"}).json()["data"] == {"a": "1", "z": "3"}


def test_an_update_takes_over_what_it_changes(http: httpx2.Client) -> None:
    put(http, {"k": "v"}, labels={"a": "b"})
    moved = http.patch(
        f"{HOME}/configmaps/c",
        content='{"data":{"k":"5"}}',
        headers={"content-type": "application/merge-patch+json"},
    ).json()
    assert owners(moved) == {
        "m Apply": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "curl Update": {"f:data": {"f:k": {}}},
    }


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            {**settings(None), "date": {}},
            (
                "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .date: field not declared "
                "in schema"
            ),
        ),
        (
            settings({"k": 5}),
            (
                "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .data.k: expected string, "
                "got &value.valueUnstructured{Value:5}"
            ),
        ),
    ],
)
def test_what_cannot_be_typed_is_500(http: httpx2.Client, body: Any, says: str) -> None:
    answer = apply(http, f"{HOME}/configmaps/c", body)
    assert (answer.status_code, answer.json()["message"], "reason" in answer.json()) == (500, says, False)


def test_a_field_manager_is_required(http: httpx2.Client) -> None:
    answer = apply(http, f"{HOME}/configmaps/c", settings({}), "")
    assert (answer.status_code, answer.json()["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )


def test_lists_with_keys_merge_by_them(http: httpx2.Client) -> None:
    apply(
        http, f"{DEPLOYMENTS}/d", deployment(env=[{"name": "X", "value": "1"}], ports=[{"containerPort": 80}])
    )
    both = apply(http, f"{DEPLOYMENTS}/d", deployment(env=[{"name": "Y", "value": "2"}]), "n").json()
    (container,) = both["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == ["X", "Y"]
    fields = owners(both)["m Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert fields["f:ports"] == {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    alone = apply(http, f"{DEPLOYMENTS}/d", deployment(), "m").json()
    (container,) = alone["spec"]["template"]["spec"]["containers"]
    assert ([each["name"] for each in container["env"]], "ports" in container) == (["Y"], False)


def test_defaults_are_nobodys_and_no_drift(http: httpx2.Client) -> None:
    made = apply(http, f"{DEPLOYMENTS}/d", deployment()).json()
    assert made["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert "f:strategy" not in owners(made)["m Apply"]["f:spec"]
    assert (
        apply(http, f"{DEPLOYMENTS}/d", deployment()).json()["metadata"]["resourceVersion"]
        == made["metadata"]["resourceVersion"]
    )


def test_an_atomic_list_has_one_owner(http: httpx2.Client) -> None:
    apply(http, f"{DEPLOYMENTS}/d", deployment(command=["sh"]))
    answer = apply(http, f"{DEPLOYMENTS}/d", deployment(command=["sh", "-c"]), "n")
    assert (
        answer.json()["details"]["causes"][0]["field"] == '.spec.template.spec.containers[name="a"].command'
    )
