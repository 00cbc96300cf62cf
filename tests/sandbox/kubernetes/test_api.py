"""The API through plain HTTP: bodies and statuses as a kube-apiserver 1.36 answered them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kube_serving import Served

from bfinfra.sandbox.kubernetes.registry import Registry

HOME = "/api/v1/namespaces/default"


def config_map(name: str, data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason", "message"),
    [
        ("GET", f"{HOME}/configmaps/no", None, 404, "NotFound", 'configmaps "no" not found'),
        (
            "GET",
            "/apis/apps/v1/namespaces/default/deployments/no",
            None,
            404,
            "NotFound",
            'deployments.apps "no" not found',
        ),
        ("PUT", f"{HOME}/configmaps/no", config_map("no"), 404, "NotFound", 'configmaps "no" not found'),
        (
            "POST",
            "/api/v1/namespaces/no/configmaps",
            config_map("a"),
            404,
            "NotFound",
            'namespaces "no" not found',
        ),
        (
            "POST",
            f"{HOME}/configmaps",
            {"data": {}},
            422,
            "Invalid",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            "POST",
            f"{HOME}/configmaps",
            config_map("a", namespace="other"),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "POST",
            f"{HOME}/secrets",
            {"metadata": {"name": "a"}, "data": {"a": "!!"}},
            400,
            "BadRequest",
            'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
        ),
        (
            "POST",
            "/apis/batch/v1/namespaces/default/jobs",
            {
                "metadata": {"name": "p"},
                "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}},
            },
            422,
            "Invalid",
            (
                'Job.batch "p" is invalid: spec.template.spec.restartPolicy: Required value: valid values: '
                '"OnFailure", "Never"'
            ),
        ),
        (
            "DELETE",
            "/api/v1/namespaces/kube-system",
            None,
            403,
            "Forbidden",
            'namespaces "kube-system" is forbidden: this namespace may not be deleted',
        ),
        (
            "PUT",
            f"{HOME}/configmaps",
            {},
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
    ],
)
def test_refusals_are_worded_as_a_real_server_words_them(
    http: httpx2.Client, method: str, path: str, body: Any, code: int, reason: str, message: str
) -> None:
    answer = http.request(method, path, json=body) if body is not None else http.request(method, path)
    status = answer.json()
    assert (answer.status_code, status["kind"], status["code"], status["reason"], status["message"]) == (
        code,
        "Status",
        code,
        reason,
        message,
    )


def test_an_unknown_path_is_plain_text(http: httpx2.Client) -> None:
    answer = http.get("/apis/nope/v1/x")
    assert (answer.status_code, answer.text) == (404, "404 page not found\n")


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_a_known_token_nothing_but_health_and_version_is_answered(served: Served, token: str) -> None:
    with served.http(token) as client:
        assert [
            client.get(path).status_code
            for path in ("/version", "/readyz", "/api/v1/pods", "/apis", "/openapi/v3")
        ] == [200, 200, 401, 401, 401]


def test_a_second_create_conflicts(http: httpx2.Client) -> None:
    assert http.post(f"{HOME}/configmaps", json=config_map("a")).status_code == 201
    answer = http.post(f"{HOME}/configmaps", json=config_map("a"))
    assert (answer.status_code, answer.json()["reason"], answer.json()["details"]) == (
        409,
        "AlreadyExists",
        {"name": "a", "kind": "configmaps"},
    )


def test_generate_name_makes_different_names(http: httpx2.Client) -> None:
    names = {
        http.post(f"{HOME}/configmaps", json={"metadata": {"generateName": "a-"}}).json()["metadata"]["name"]
        for _ in range(3)
    }
    assert len(names) == 3
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


def test_a_write_against_an_older_version_conflicts(http: httpx2.Client) -> None:
    old = http.post(f"{HOME}/configmaps", json=config_map("a", {"k": "1"})).json()
    assert http.put(f"{HOME}/configmaps/a", json={**old, "data": {"k": "2"}}).status_code == 200
    answer = http.put(f"{HOME}/configmaps/a", json={**old, "data": {"k": "3"}})
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.json()["message"]


def test_a_write_that_changes_nothing_keeps_the_version(http: httpx2.Client) -> None:
    old = http.post(f"{HOME}/configmaps", json=config_map("a", {"k": "1"})).json()
    assert http.put(f"{HOME}/configmaps/a", json=old).json() == old


@pytest.mark.parametrize(
    ("kind", "patch", "data"),
    [
        ("merge-patch+json", {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
        ("strategic-merge-patch+json", {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
        (
            "json-patch+json",
            [
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "move", "from": "/data/a", "path": "/data/z"},
            ],
            {"b": "2", "z": "1"},
        ),
    ],
)
def test_the_older_patches(http: httpx2.Client, kind: str, patch: Any, data: dict[str, str]) -> None:
    http.post(f"{HOME}/configmaps", json=config_map("a", {"a": "1", "b": "2"}))
    answer = http.patch(
        f"{HOME}/configmaps/a", content=json.dumps(patch), headers={"content-type": f"application/{kind}"}
    )
    assert answer.json()["data"] == data


def test_a_strategic_patch_merges_containers_by_name(http: httpx2.Client) -> None:
    spec = {
        "containers": [
            {"name": "a", "image": "x:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "b", "image": "y:1"},
        ]
    }
    template = {"metadata": {"labels": {"l": "m"}}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/deployments"
    http.post(
        path,
        json={
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"l": "m"}}, "template": template},
        },
    )
    patch = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "b", "$patch": "delete"},
                        {"name": "a", "env": [{"name": "B", "value": "2"}]},
                    ]
                }
            }
        }
    }
    answer = http.patch(
        f"{path}/d",
        content=json.dumps(patch),
        headers={"content-type": "application/strategic-merge-patch+json"},
    ).json()
    (left,) = answer["spec"]["template"]["spec"]["containers"]
    assert (left["image"], [each["name"] for each in left["env"]], answer["metadata"]["generation"]) == (
        "x:1",
        ["A", "B"],
        2,
    )


def test_a_dry_run_answers_and_keeps_nothing(http: httpx2.Client) -> None:
    assert http.post(f"{HOME}/configmaps?dryRun=All", json=config_map("a")).status_code == 201
    assert http.get(f"{HOME}/configmaps/a").status_code == 404
    http.post(f"{HOME}/configmaps", json=config_map("a"))
    http.delete(f"{HOME}/configmaps/a?dryRun=All")
    assert http.get(f"{HOME}/configmaps/a").status_code == 200


def test_unknown_fields_are_dropped_with_a_warning_or_refused(http: httpx2.Client) -> None:
    answer = http.post(f"{HOME}/configmaps", json={**config_map("a"), "foo": 1})
    assert (answer.status_code, answer.headers["warning"], "foo" in answer.json()) == (
        201,
        '299 - "unknown field \\"foo\\""',
        False,
    )
    strict = http.post(f"{HOME}/configmaps?fieldValidation=Strict", json={**config_map("b"), "foo": 1})
    assert (strict.status_code, "strict decoding error" in strict.json()["message"]) == (400, True)


def test_secrets_take_plain_text_and_can_be_frozen(http: httpx2.Client) -> None:
    made = http.post(
        f"{HOME}/secrets", json={"metadata": {"name": "s"}, "stringData": {"a": "b"}, "immutable": True}
    ).json()
    assert (made["data"], made["type"], "stringData" in made) == ({"a": "Yg=="}, "Opaque", False)
    answer = http.patch(
        f"{HOME}/secrets/s",
        content='{"stringData":{"a":"c"}}',
        headers={"content-type": "application/merge-patch+json"},
    )
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "data")


def test_lists_are_selected_and_paged(http: httpx2.Client) -> None:
    for number in range(5):
        http.post(
            f"{HOME}/configmaps",
            json=config_map(f"c{number}", labels={"n": str(number), "even": str(number % 2 == 0).lower()}),
        )
    names = lambda query: [  # noqa: E731 - one expression with a name
        each["metadata"]["name"] for each in http.get(f"{HOME}/configmaps?{query}").json()["items"]
    ]
    assert names("labelSelector=even%3Dtrue,n!%3D2") == ["c0", "c4"]
    assert names("labelSelector=n+in+(1,3),even") == ["c1", "c3"]
    assert names("labelSelector=!even") == []
    assert names("fieldSelector=metadata.name%3Dc3") == ["c3"]
    first = http.get(f"{HOME}/configmaps?limit=2").json()
    assert (len(first["items"]), first["metadata"]["remainingItemCount"]) == (2, 3)
    rest = http.get(f"{HOME}/configmaps", params={"continue": first["metadata"]["continue"]}).json()
    assert [each["metadata"]["name"] for each in rest["items"]] == ["c2", "c3", "c4"]


def test_finalizers_hold_an_object_until_they_are_gone(http: httpx2.Client) -> None:
    http.post(f"{HOME}/configmaps", json=config_map("a", finalizers=["x.test/f"]))
    assert http.delete(f"{HOME}/configmaps/a").json()["metadata"]["deletionTimestamp"]
    assert http.get(f"{HOME}/configmaps/a").status_code == 200
    http.patch(
        f"{HOME}/configmaps/a",
        content='{"metadata":{"finalizers":null}}',
        headers={"content-type": "application/merge-patch+json"},
    )
    assert http.get(f"{HOME}/configmaps/a").status_code == 404


def test_a_deletion_may_insist_on_a_uid(http: httpx2.Client) -> None:
    uid = http.post(f"{HOME}/configmaps", json=config_map("a")).json()["metadata"]["uid"]
    assert (
        http.request("DELETE", f"{HOME}/configmaps/a", json={"preconditions": {"uid": "x"}}).status_code
        == 409
    )
    assert (
        http.request("DELETE", f"{HOME}/configmaps/a", json={"preconditions": {"uid": uid}}).json()["status"]
        == "Success"
    )


def test_an_older_server_lacks_what_came_later() -> None:
    assert Registry("v1.20.2+vmware.1").find("batch", "v1", "cronjobs") is None
    assert Registry("v1.21.2").find("batch", "v1", "cronjobs")


@contextlib.contextmanager
def robot(served: Served, http: httpx2.Client, rule: dict[str, Any]) -> Iterator[httpx2.Client]:
    """An account of default's with one rule."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    http.post(f"{HOME}/serviceaccounts", json={"metadata": {"name": "robot"}})
    http.post(f"{rbac}/roles", json={"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], **rule}]})
    http.post(
        f"{rbac}/rolebindings",
        json={
            "metadata": {"name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        },
    )
    token = http.post(f"{HOME}/serviceaccounts/robot/token", json={"spec": {}}).json()["status"]["token"]
    with served.http(token) as client:
        yield client


def test_roles_decide_and_reviews_tell(served: Served, http: httpx2.Client) -> None:
    rule = {"resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]}
    with robot(served, http, rule) as client:
        assert client.get(f"{HOME}/secrets/mine").status_code == 404
        denied = client.get(f"{HOME}/secrets/other")
        review = lambda **wanted: client.post(  # noqa: E731 - one expression with a name
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json={"spec": {"resourceAttributes": {"namespace": "default", **wanted}}},
        ).json()["status"]["allowed"]
        assert (
            review(verb="get", resource="secrets", name="mine"),
            review(verb="list", resource="secrets"),
        ) == (True, False)
    assert denied.status_code == 403
    assert denied.json()["message"] == (
        'secrets "other" is forbidden: User "system:serviceaccount:default:robot" cannot get resource '
        '"secrets" in API group "" in the namespace "default"'
    )


def test_who_may_patch_alone_can_not_apply_what_is_not_there(served: Served, http: httpx2.Client) -> None:
    """As a kube-apiserver 1.36 answers."""
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    how = {"content": body, "headers": {"content-type": "application/apply-patch+yaml"}}
    with robot(served, http, {"resources": ["configmaps"], "verbs": ["patch"]}) as client:
        denied = client.patch(f"{HOME}/configmaps/c", params={"fieldManager": "m"}, **how)
        assert denied.status_code == 403
        assert (
            'configmaps "c" is forbidden: User "system:serviceaccount:default:robot" cannot create'
            in denied.json()["message"]
        )
        http.post(f"{HOME}/configmaps", json={"metadata": {"name": "c"}})
        assert client.patch(f"{HOME}/configmaps/c", params={"fieldManager": "m"}, **how).status_code == 200
