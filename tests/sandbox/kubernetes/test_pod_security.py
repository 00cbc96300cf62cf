"""A namespace's Pod Security labels refuse and warn as Kubernetes' own admission does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

LEVEL = "pod-security.kubernetes.io/"
GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED = (
    'allowPrivilegeEscalation != false (container "c" must set '
    "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities "
    '(container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or '
    'container "c" must set '
    'securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
    'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
)


@pytest.fixture
def running(clock: Clock) -> Iterator[RunningCluster]:
    made = RunningCluster("g", "v1.27.5", clock, Outside(ca_pem="CA"))
    made.start()
    made.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
    for level in ("privileged", "baseline", "restricted"):
        made.cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": level, "labels": {f"{LEVEL}enforce": level}},
            }
        )
        until(lambda level=level: made.cluster.get("", "serviceaccounts", "default", level))  # type: ignore[misc]  # mypy infers no lambda with a default
    yield made
    made.cluster.close()


@pytest.fixture
def http(running: RunningCluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    with http_of(running.cluster, listeners, pki) as client:
        yield client


def pod(context: Any = None, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "x:1",
        **({"securityContext": context} if context else {}),
        **spec.pop("container", {}),
    }
    return {
        "metadata": {"name": "p", **spec.pop("metadata", {})},
        "spec": {"containers": [container], **spec},
    }


def made(http: httpx2.Client, namespace: str, body: Any) -> httpx2.Response:
    return http.post(f"/api/v1/namespaces/{namespace}/pods", json=body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (pod(hostNetwork=True, hostPID=True), "host namespaces (hostNetwork=true, hostPID=true)"),
        (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
        (
            pod({"privileged": True}),
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (
            pod({"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "IPC_LOCK"]}}),
            (
                'non-default capabilities (container "c" must not include "IPC_LOCK", "SYS_ADMIN" in '
                "securityContext.capabilities.add)"
            ),
        ),
        (
            pod(container={"ports": [{"containerPort": 1, "hostPort": 80}]}),
            'hostPort (container "c" uses hostPort 80)',
        ),
        (
            pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            pod({"procMount": "Unmasked"}),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            pod({"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
            (
                'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; '
                "user may not be set)"
            ),
        ),
        (
            pod({"windowsOptions": {"hostProcess": True}}),
            'hostProcess (container "c" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            pod(metadata={"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}),
            (
                "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
                '"container.apparmor.security.beta.kubernetes.io/c=\\"unconfined\\"")'
            ),
        ),
    ],
)
def test_baseline_refuses_what_reaches_the_node(http: httpx2.Client, body: Any, why: str) -> None:
    answer = made(http, "baseline", body)
    assert (answer.status_code, answer.json()["message"]) == (
        403,
        f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {why}',
    )
    assert made(http, "privileged", body).status_code == 201


def test_restricted_requires_every_field(http: httpx2.Client) -> None:
    assert made(http, "baseline", pod()).status_code == 201
    assert (
        made(http, "restricted", pod()).json()["message"]
        == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {RESTRICTED}'
    )
    for body, why in (
        (
            pod(GOOD, volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
            'restricted volume types (volume "v" uses restricted volume type "nfs")',
        ),
        (
            pod({**GOOD, "runAsNonRoot": False}),
            'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)',
        ),
        (pod({**GOOD, "runAsUser": 0}), 'runAsUser=0 (container "c" must not set runAsUser=0)'),
    ):
        assert made(http, "restricted", body).json()["message"].endswith(f": {why}")
    assert (
        made(
            http, "restricted", pod({**GOOD, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}})
        ).status_code
        == 201
    )


def test_a_template_is_warned_of_and_its_pods_are_refused(
    running: RunningCluster, http: httpx2.Client
) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod()["spec"], "restartPolicy": "Never"}}
    answer = http.post(
        "/apis/batch/v1/namespaces/restricted/jobs",
        json={"metadata": {"name": "j"}, "spec": {"template": template}},
    )
    assert (
        answer.status_code,
        answer.headers["warning"].startswith(
            '299 - "would violate PodSecurity \\"restricted:latest\\": allow'
        ),
    ) == (201, True)
    event, *_ = until(
        lambda: [
            each
            for each in running.cluster.all("", "events", "restricted")
            if each["reason"] == "FailedCreate"
        ]
    )
    assert (event["involvedObject"]["kind"], event["message"].startswith('Error creating: pods "j-')) == (
        "Job",
        True,
    )
    labels = {"metadata": {"labels": {f"{LEVEL}enforce": "baseline"}}}
    http.patch(
        "/api/v1/namespaces/restricted", json=labels, headers={"content-type": "application/merge-patch+json"}
    )
    until(lambda: running.cluster.all("", "pods", "restricted"))


def test_levels_are_words_that_are_known_and_a_stricter_one_warns_of_pods(http: httpx2.Client) -> None:
    patch = {"content-type": "application/merge-patch+json"}
    answer = http.patch(
        "/api/v1/namespaces/default",
        json={"metadata": {"labels": {f"{LEVEL}enforce": "strict"}}},
        headers=patch,
    )
    assert answer.json()["message"] == (
        f'Namespace "default" is invalid: metadata.labels[{LEVEL}enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted"
    )
    assert made(http, "privileged", pod({"privileged": True})).status_code == 201
    warned = http.patch(
        "/api/v1/namespaces/privileged",
        json={"metadata": {"labels": {f"{LEVEL}enforce": "baseline"}}},
        headers=patch,
    )
    assert warned.headers["warning"].startswith(
        '299 - "existing pods in namespace \\"privileged\\" violate the new PodSecurity enforce level '
        '\\"baseline:latest\\""'
    )


def test_before_1_23_labels_are_words_without_a_meaning(clock: Clock) -> None:
    old = RunningCluster("g", "v1.22.9", clock, Outside(ca_pem="CA"))
    old.start()
    old.cluster.ensure(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "r", "labels": {f"{LEVEL}enforce": "restricted"}},
        }
    )
    until(lambda: old.cluster.get("", "serviceaccounts", "default", "r"))
    assert old.cluster.create({"apiVersion": "v1", "kind": "Pod", **pod(metadata={"namespace": "r"})})
    old.cluster.close()
