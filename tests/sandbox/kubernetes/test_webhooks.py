"""Webhooks of a cluster are called as an API server calls them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from kube_serving import http_of
from waiting import until

from bfinfra.backends import authority
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.programs import Container, Listening
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOOKS = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{HOOKS}/mutatingwebhookconfigurations", f"{HOOKS}/validatingwebhookconfigurations"
PODS, MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
CALL = (
    'failed calling webhook "a.b.test": failed to call webhook: Post '
    '"https://hook.hooks.svc:443/?timeout=10s"'
)
Answer = dict[str, Any]


class Hook:
    """A program that answers what a test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.says: Callable[[Any], Answer | None] = lambda _: {"allowed": True}

    def runs(self, image: str) -> bool:
        return image == "hook:1"

    def listens(self, container: Container) -> Listening | None:
        return Listening(8443, container.files["/certs/cert.pem"], container.files["/certs/key.pem"])

    def review(self, container: Container, path: str, review: Any) -> Any:
        self.asked.append(review)
        answer = self.says(review)
        return answer and {
            "kind": "AdmissionReview",
            "apiVersion": review["apiVersion"],
            "response": {"uid": review["request"]["uid"], **answer},
        }


def patching(*operations: Answer) -> Callable[[Any], Answer]:
    return lambda _: {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


@pytest.fixture(scope="module")
def signed() -> tuple[bytes, tuple[bytes, bytes]]:
    """An authority, and what it signed for the Service."""
    certificate, key = authority.make("test", 2)
    return certificate, authority.issue(certificate, key, ("hook.hooks.svc",), 1)


@pytest.fixture
def running(clock: Clock, signed: tuple[bytes, tuple[bytes, bytes]]) -> Iterator[RunningCluster]:
    made = RunningCluster("g", "v1.27.5", clock, Outside(ca_pem="CA"))
    made.start()
    made.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
    cluster = made.cluster
    cluster.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hooks"}})
    until(lambda: all(cluster.get("", "serviceaccounts", "default", each) for each in ("default", "hooks")))
    data = {
        name: base64.b64encode(value).decode()
        for name, value in zip(("cert.pem", "key.pem"), signed[1], strict=True)
    }
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "certs", "namespace": "hooks"},
            "data": data,
        }
    )
    service = {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hook", "namespace": "hooks"},
            "spec": service,
        }
    )
    yield made
    cluster.close()


@pytest.fixture
def http(running: RunningCluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    with http_of(running.cluster, listeners, pki) as client:
        yield client


def start(running: RunningCluster) -> None:
    spec = {
        "containers": [
            {"name": "c", "image": "hook:1", "volumeMounts": [{"name": "certs", "mountPath": "/certs"}]}
        ],
        "volumes": [{"name": "certs", "secret": {"secretName": "certs"}}],
    }
    running.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "hook", "namespace": "hooks", "labels": {"app": "hook"}},
            "spec": spec,
        }
    )
    until(lambda: running.cluster.get("", "pods", "hook", "hooks")["status"]["phase"] == "Running")  # type: ignore[index]  # it is there


@pytest.fixture
def hook(running: RunningCluster) -> Hook:
    """Its pod runs."""
    made = Hook()
    running.cluster.webhooks.services.programs.append(made)
    start(running)
    return made


@pytest.fixture
def bundle(signed: tuple[bytes, tuple[bytes, bytes]]) -> str:
    return base64.b64encode(signed[0]).decode()


def asking(bundle: str, name: str = "a.b.test", **changes: Any) -> Answer:
    config = {"service": {"name": "hook", "namespace": "hooks"}, "caBundle": bundle}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": config,
        "rules": [RULE],
        **changes,
    }


def configure(http: httpx2.Client, path: str, *hooks: Answer, name: str = "c") -> httpx2.Response:
    return http.post(path, json={"metadata": {"name": name}, "webhooks": list(hooks)})


def made(http: httpx2.Client, name: str, path: str = MAPS, query: str = "", **more: Any) -> httpx2.Response:
    return http.post(path + query, json={"metadata": {"name": name, **more}})


def test_a_mutating_webhook_patches_what_is_stored(http: httpx2.Client, hook: Hook, bundle: str) -> None:
    assert configure(http, MUTATING, asking(bundle)).status_code == 201
    hook.says = patching({"op": "add", "path": "/data", "value": {"by": "hook"}})
    assert made(http, "a").json()["data"] == {"by": "hook"}
    request = hook.asked[0]["request"]
    assert (request["operation"], request["name"], request["namespace"], request["dryRun"]) == (
        "CREATE",
        "a",
        "default",
        False,
    )
    assert "uid" not in request["object"]["metadata"]
    assert request["userInfo"]["username"] == "kubernetes-admin"
    assert (
        http.patch(
            f"{MAPS}/a", json={"data": {"x": "y"}}, headers={"content-type": "application/merge-patch+json"}
        ).status_code
        == 200
    )
    assert len(hook.asked) == 1  # the rule names CREATE only


def test_a_validating_webhook_refuses_with_its_own_words(
    http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(http, VALIDATING, asking(bundle, rules=[{**RULE, "operations": ["*"]}]))
    assert made(http, "a").status_code == 201
    hook.says = lambda _: {"allowed": False, "status": {"message": "not today", "code": 418}}
    answer = made(http, "b")
    assert (answer.status_code, answer.json()["message"]) == (
        418,
        'admission webhook "a.b.test" denied the request: not today',
    )
    hook.says = lambda _: {"allowed": False}
    assert (
        http.delete(f"{MAPS}/a").json()["message"]
        == 'admission webhook "a.b.test" denied the request without explanation'
    )
    assert hook.asked[-1]["request"]["operation"] == "DELETE"
    assert hook.asked[-1]["request"]["oldObject"]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ({"name": "none", "namespace": "hooks"}, 'service "none" not found'),
        ({"name": "hook", "namespace": "hooks", "port": 1}, 'no service port 1 found for service "hook"'),
        ({"name": "hook", "namespace": "hooks"}, 'no endpoints available for service "hook"'),
    ],
)
def test_a_webhook_that_does_not_answer_fails_or_is_ignored(
    running: RunningCluster, http: httpx2.Client, bundle: str, service: Answer, why: str
) -> None:
    config = {"service": service, "caBundle": bundle}
    configure(http, MUTATING, asking(bundle, clientConfig=config))
    answer = made(http, "a")
    assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
    assert answer.json()["message"].startswith(
        'Internal error occurred: failed calling webhook "a.b.test": failed to call webhook: Post "https://'
    )
    assert answer.json()["message"].endswith(f": {why}")
    assert http.delete(f"{MUTATING}/c").status_code == 200  # never shown to a webhook
    configure(http, MUTATING, asking(bundle, clientConfig=config, failurePolicy="Ignore"))
    assert made(http, "a").status_code == 201
    assert running.cluster.get("", "configmaps", "a", "default")


def test_a_certificate_that_the_bundle_does_not_sign_is_no_answer(
    http: httpx2.Client, hook: Hook, pki: Pki
) -> None:
    configure(http, MUTATING, asking(base64.b64encode(pki.ca_pem.encode()).decode()))
    assert (
        made(http, "a").json()["message"]
        == f"Internal error occurred: {CALL}: x509: certificate signed by unknown authority"
    )
    assert hook.asked == []


def test_a_webhook_serves_with_what_it_read_at_its_start(
    running: RunningCluster, http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(http, MUTATING, asking(bundle))
    secret = running.cluster.get("", "secrets", "certs", "hooks")
    assert secret
    running.cluster.change(secret, lambda live: live.__setitem__("data", {}))
    running.restore(json.loads(json.dumps(running.save())))
    assert made(http, "a").status_code == 201
    assert hook.asked


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"allowed": True, "uid": "other"}, 'expected response.uid="'),
        ({"allowed": True, "patch": "W10="}, "webhook returned response.patch but not response.patchType"),
    ],
)
def test_an_answer_that_v1_does_not_allow_is_no_answer(
    http: httpx2.Client, hook: Hook, bundle: str, answer: Answer, why: str
) -> None:
    configure(http, MUTATING, asking(bundle))
    hook.says = lambda _: answer
    assert f'failed calling webhook "a.b.test": {why}' in made(http, "a").json()["message"]


def test_a_patch_that_does_not_fit_is_refused_whatever_the_policy(
    http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(http, MUTATING, asking(bundle, failurePolicy="Ignore"))
    hook.says = patching({"op": "replace", "path": "/spec/x", "value": 1})
    answer = made(http, "a")
    assert (answer.status_code, "replace operation does not apply" in answer.json()["message"]) == (500, True)


def test_a_slow_webhook_is_not_waited_for(http: httpx2.Client, hook: Hook, bundle: str) -> None:
    def slow(_: Any) -> Answer:
        raise TimeoutError

    configure(http, VALIDATING, asking(bundle, timeoutSeconds=3))
    hook.says = slow
    assert made(http, "a").json()["message"].endswith('/?timeout=3s": context deadline exceeded')


def test_selectors_choose_namespaces_and_objects(
    running: RunningCluster, http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    running.cluster.ensure(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "chosen", "labels": {"gpu": "yes"}}}
    )
    there = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["yes"]}]}
    configure(
        http, VALIDATING, asking(bundle, namespaceSelector=there, objectSelector={"matchLabels": {"a": "b"}})
    )
    for space, labels in (("default", {"a": "b"}), ("chosen", {}), ("chosen", {"a": "b"})):
        assert (
            made(http, f"m{len(labels)}", f"/api/v1/namespaces/{space}/configmaps", labels=labels).status_code
            == 201
        )
    assert [each["request"]["namespace"] for each in hook.asked] == ["chosen"]


def test_on_a_dry_run_a_webhook_is_asked_only_if_it_has_no_side_effects(
    running: RunningCluster, http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(http, VALIDATING, asking(bundle))
    assert made(http, "a", query="?dryRun=All").status_code == 201
    assert hook.asked[0]["request"]["dryRun"] is True
    live = running.cluster.get("admissionregistration.k8s.io", "validatingwebhookconfigurations", "c")
    assert live
    running.cluster.store.put(
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        {**live, "webhooks": [{**live["webhooks"][0], "sideEffects": "Some"}]},
    )
    answer = made(http, "a", query="?dryRun=All")
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        'admission webhook "a.b.test" does not support dry run',
    )
    assert made(http, "a").status_code == 201


def test_a_webhook_is_asked_again_after_others_changed_the_object(
    http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(
        http,
        MUTATING,
        asking(bundle, "first.b.test", reinvocationPolicy="IfNeeded"),
        asking(bundle, "second.b.test"),
    )

    def count(review: Any) -> Answer:
        data = review["request"]["object"].get("data") or {}
        return (
            patching({"op": "add", "path": "/data", "value": {**data, f"n{len(hook.asked)}": ""}})(review)
            if len(hook.asked) < 3
            else {"allowed": True}
        )

    hook.says = count
    assert made(http, "a").json()["data"] == {"n1": "", "n2": ""}
    assert len(hook.asked) == 3


def test_a_refused_pod_is_reported_to_its_owner_and_made_when_it_may_be(
    running: RunningCluster, http: httpx2.Client, hook: Hook, bundle: str
) -> None:
    configure(http, VALIDATING, asking(bundle, rules=[{**RULE, "resources": ["pods"]}]))
    hook.says = lambda _: {"allowed": False, "status": {"message": "no"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    assert http.post("/apis/apps/v1/namespaces/default/deployments", json=body).status_code == 201
    answer = until(
        lambda: [
            each for each in running.cluster.all("", "events", "default") if each["reason"] == "FailedCreate"
        ]
    )
    assert answer[0]["message"] == 'Error creating: admission webhook "a.b.test" denied the request: no'
    assert answer[0]["involvedObject"]["kind"] == "ReplicaSet"
    http.delete(f"{VALIDATING}/c")
    until(lambda: running.cluster.all("", "pods", "default"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}},
            (
                "webhooks[0].namespaceSelector.matchExpressions[0].values: Required value: must be "
                "specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
        (
            {"timeoutSeconds": 31},
            (
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 "
                "seconds"
            ),
        ),
        (
            {"failurePolicy": "Maybe"},
            'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
        ),
        ({"rules": [{**RULE, "resources": []}]}, "webhooks[0].rules[0].resources: Required value"),
        (
            {"sideEffects": "Some"},
            'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        ),
    ],
)
def test_a_configuration_that_a_real_server_refuses_is_refused(
    http: httpx2.Client, bundle: str, changes: Answer, why: str
) -> None:
    answer = configure(http, MUTATING, asking(bundle, **changes))
    assert (answer.status_code, answer.json()["message"]) == (
        422,
        f'MutatingWebhookConfiguration.admissionregistration.k8s.io "c" is invalid: {why}',
    )
