"""A cluster in which things run: pods with Bitfusion clients, jobs, claims, workloads, quotas, garbage, own
resources.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.controllers.claims import storage_class
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOME = "/api/v1/namespaces/default"
SERVER = SimpleNamespace(
    uuid="6e9df987-a6e8-4d18-9476-9ea12a419e83", version="3.0.0-f95ba24a", memory=(32510, 32510)
)
UP = {"172.24.210.80:56001": SERVER}
OUTSIDE = Outside(
    ca_pem="CA",
    registries={"reg.test": SimpleNamespace(username="u", password="p")},
    gpu_server=UP.get,
    gpu_servers=lambda: UP,
    host=lambda _: SimpleNamespace(
        has_image=lambda name: name == "reg.test/loaded:1", folder=lambda _: False
    ),
    images={
        "printer:*": SimpleNamespace(output="one\ntwo\n", seconds=None, exit_code=0),
        "broken": SimpleNamespace(output="no", seconds=None, exit_code=3),
    },
)


@pytest.fixture
def guest(listeners: Listeners, pki: Pki, clock: Clock) -> Iterator[RunningCluster]:
    running = RunningCluster("g", "v1.27.5", clock, OUTSIDE)
    running.start()
    running.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
    running.cluster.ensure(storage_class("gold"))
    until(lambda: running.cluster.get("", "serviceaccounts", "default", "default"))
    yield running
    running.cluster.close()


@pytest.fixture
def http(guest: RunningCluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    with http_of(guest.cluster, listeners, pki) as client:
        yield client


def pod(name: str = "p", image: str = "x:1", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, **more.pop("container", {})}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container], **more}}


def test_a_cluster_cleared_in_the_middle_of_its_work_works_again(guest: RunningCluster, clock: Clock) -> None:
    home, go = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, threading.Event()
    clock.after(0, go.wait)
    guest.cluster.create(home)  # looked at only when the clock goes on
    clock.forget()
    guest.clear()
    go.set()
    guest.start()
    assert guest.cluster.get("", "namespaces", "a") is None
    guest.cluster.create(home)
    until(lambda: guest.cluster.get("", "serviceaccounts", "default", "a"))


@pytest.mark.parametrize(("version", "labelled"), [("v1.20.15", False), ("v1.21.0", True)])
def test_a_namespace_is_labelled_with_its_name_from_1_21_on(
    clock: Clock, version: str, labelled: bool
) -> None:
    running = RunningCluster("g", version, clock, OUTSIDE)
    running.start()
    running.cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "y"}}}
    )
    wanted = {"x": "y", **({"kubernetes.io/metadata.name": "a"} if labelled else {})}
    assert (running.cluster.get("", "namespaces", "a") or {})["metadata"]["labels"] == wanted
    running.upgrade("v1.22.0")
    assert (running.cluster.get("", "namespaces", "a") or {})["metadata"]["labels"] == {
        "x": "y",
        "kubernetes.io/metadata.name": "a",
    }
    running.cluster.close()


def created(http: httpx2.Client, path: str, body: Any) -> Any:
    answer = http.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def phase(http: httpx2.Client, name: str = "p") -> str:
    return str(http.get(f"{HOME}/pods/{name}").json()["status"]["phase"])


def waiting(http: httpx2.Client, name: str = "p") -> str:
    states = http.get(f"{HOME}/pods/{name}").json()["status"].get("containerStatuses") or [{}]
    return str(states[0].get("state", {}).get("waiting", {}).get("reason", ""))


def servers_conf(http: httpx2.Client, text: str) -> dict[str, Any]:
    """A token as a pod has to have it: client.yaml where the client may write."""
    files = {"servers.conf": text, "ca.crt": "a certificate", "client.yaml": "key: abc"}
    data = {name: base64.b64encode(content.encode()).decode() for name, content in files.items()}
    created(http, f"{HOME}/secrets", {"metadata": {"name": "servers"}, "data": data})
    copying = {
        "name": "copy",
        "image": "i",
        "command": ["/bin/sh", "-c", "cp /from/client.yaml /to/ && chmod 600 /to/client.yaml"],
        "volumeMounts": [{"name": "s", "mountPath": "/from"}, {"name": "own", "mountPath": "/to"}],
    }
    return {
        "initContainers": [copying],
        "volumes": [{"name": "s", "secret": {"secretName": "servers"}}, {"name": "own", "emptyDir": {}}],
    }


MOUNTED = {
    "volumeMounts": [
        {"name": "own", "mountPath": "/root/.bitfusion"},
        {"name": "s", "mountPath": "/etc/bitfusion/servers.conf", "subPath": "servers.conf"},
        {"name": "s", "mountPath": "/etc/bitfusion/tls/ca.crt", "subPath": "ca.crt"},
    ]
}
GPUS = {"env": [{"name": "NUM_GPUS", "value": "2"}, {"name": "PARTIAL_GPU", "value": "0.8"}]}


def test_a_pod_with_bitfusion_locks_gpus_and_says_so(http: httpx2.Client) -> None:
    volumes = servers_conf(http, "servers:\n- reachable: 172.24.210.80:56001\n")
    created(http, f"{HOME}/pods", pod(container={**MOUNTED, **GPUS, "command": ["/run.sh"]}, **volumes))
    until(lambda: phase(http) == "Succeeded")
    log = http.get(f"{HOME}/pods/p/log?follow=true").text
    assert (
        "Requesting GPUs [0 1] with 26008 MiB of memory from server 0, with version 3.0.0-f95ba24a..." in log
    )
    assert "Locked 2 GPUs with partial memory 0.8, configuration saved to '/tmp/bitfusion" in log
    assert f"172.24.210.80 55001 {SERVER.uuid} 56001 3.0.0-f95ba24a" in log
    assert len(http.get(f"{HOME}/pods/p/log?tailLines=2").text.splitlines()) == 2


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ("servers:\n- reachable: 10.9.9.9:56001\n", "none of the servers responded"),
        ("servers:\n- reachable:172.24.210.80:56001\n", "Failed to parse"),
    ],
)
def test_a_pod_fails_whose_servers_are_unreachable_or_unreadable(
    http: httpx2.Client, servers: str, says: str
) -> None:
    created(
        http,
        f"{HOME}/pods",
        pod(
            container={**MOUNTED, "command": ["bitfusion", "run", "-n", "1", "--", "nvidia-smi"]},
            **servers_conf(http, servers),
        ),
    )
    until(lambda: phase(http) == "Failed")
    assert says in http.get(f"{HOME}/pods/p/log").text


@pytest.mark.parametrize(
    ("mounts", "container", "says"),
    [
        (
            [{"name": "s", "mountPath": "/etc/bitfusion"}],
            {},
            "open /root/.bitfusion/client.yaml: no such file or directory",
        ),
        (
            [*MOUNTED["volumeMounts"][1:], {"name": "s", "mountPath": "/root/.bitfusion"}],
            {},
            "open /root/.bitfusion/client.yaml: read-only file system",
        ),
        (MOUNTED["volumeMounts"][:2], {}, "open /etc/bitfusion/tls/ca.crt: no such file or directory"),
        (
            MOUNTED["volumeMounts"],
            {"env": [{"name": "HOME", "value": "/home/gpu"}]},
            "open /home/gpu/.bitfusion/client.yaml: no such file",
        ),
    ],
)
def test_a_client_needs_its_files_where_it_looks_and_wants_to_write_beside_its_own(
    http: httpx2.Client, mounts: Any, container: Any, says: str
) -> None:
    asking = {"volumeMounts": mounts, "command": ["bitfusion", "run", "-n", "1", "--", "x"], **container}
    created(
        http,
        f"{HOME}/pods",
        pod(container=asking, **servers_conf(http, "servers:\n- reachable: 172.24.210.80:56001\n")),
    )
    until(lambda: phase(http) == "Failed")
    assert says in http.get(f"{HOME}/pods/p/log").text


def test_a_client_whose_file_is_mounted_alone_says_that_it_can_not_keep_the_old_one(
    http: httpx2.Client,
) -> None:
    mounts = [
        {"name": "own", "mountPath": "/root/.bitfusion/client.yaml", "subPath": "client.yaml"},
        *MOUNTED["volumeMounts"][1:],
    ]
    asking = {"volumeMounts": mounts, "command": ["bitfusion", "run", "-n", "1", "--", "x"]}
    created(
        http,
        f"{HOME}/pods",
        pod(container=asking, **servers_conf(http, "servers:\n- reachable: 172.24.210.80:56001\n")),
    )
    until(lambda: phase(http) == "Succeeded")
    assert (
        "Unable to backup old client config file: rename /root/.bitfusion/client.yaml"
        in http.get(f"{HOME}/pods/p/log").text
    )


def test_a_command_line_asks_for_memory_too(http: httpx2.Client) -> None:
    created(
        http,
        f"{HOME}/pods",
        pod(container={"command": ["/bin/bash", "-c", "bitfusion run -n 1 -m 8000 -- python x.py"]}),
    )
    until(lambda: phase(http) == "Succeeded")
    log = http.get(f"{HOME}/pods/p/log").text
    assert "Requesting GPUs [0] with 8000 MiB" in log
    assert "Running client command 'python x.py' on 1 GPUs" in log


def test_a_pod_waits_for_its_secret(http: httpx2.Client) -> None:
    created(http, f"{HOME}/pods", pod(volumes=[{"name": "s", "secret": {"secretName": "late"}}]))
    until(lambda: waiting(http) == "ContainerCreating")
    assert http.get(f"{HOME}/pods/p/log").status_code == 400
    created(http, f"{HOME}/secrets", {"metadata": {"name": "late"}})
    until(lambda: phase(http) == "Succeeded")


def test_a_pod_waits_for_a_credential_of_its_registry(http: httpx2.Client) -> None:
    created(http, f"{HOME}/pods", pod(image="reg.test/a/b:1", imagePullSecrets=[{"name": "cred"}]))
    until(lambda: waiting(http) == "ImagePullBackOff")
    auth = base64.b64encode(
        json.dumps({"auths": {"reg.test": {"username": "u", "password": "p"}}}).encode()
    ).decode()
    created(
        http,
        f"{HOME}/secrets",
        {
            "metadata": {"name": "cred"},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": auth},
        },
    )
    until(lambda: phase(http) == "Succeeded")


@pytest.mark.parametrize(
    ("image", "policy", "ends"),
    [
        ("reg.test/loaded:1", "IfNotPresent", ""),
        ("reg.test/loaded:1", "Never", ""),
        ("reg.test/loaded:1", "Always", "ImagePullBackOff"),
        ("reg.test/other:1", "IfNotPresent", "ImagePullBackOff"),
        ("reg.test/other:1", "Never", "ErrImageNeverPull"),
    ],
)
def test_an_image_that_is_on_the_node_is_not_pulled_unless_the_pod_says_always(
    image: str, policy: str, ends: str, http: httpx2.Client
) -> None:
    created(http, f"{HOME}/pods", pod(image=image, container={"imagePullPolicy": policy}))
    until(lambda: waiting(http) == ends if ends else phase(http) == "Succeeded")


def test_a_pod_waits_for_its_claim_and_the_claim_for_its_class(
    http: httpx2.Client, guest: RunningCluster
) -> None:
    created(http, f"{HOME}/pods", pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]))
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "silver",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    created(http, f"{HOME}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    until(lambda: "unbound immediate" in http.get(f"{HOME}/pods/p").text)
    guest.cluster.ensure(storage_class("silver"))
    until(lambda: phase(http) == "Succeeded")
    claim = http.get(f"{HOME}/persistentvolumeclaims/c").json()
    assert (claim["status"]["phase"], claim["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    http.delete(f"{HOME}/persistentvolumeclaims/c")
    until(
        lambda: (
            not guest.cluster.all("", "persistentvolumeclaims")
            and not guest.cluster.all("", "persistentvolumes")
        )
    )


def test_a_pod_that_asks_for_more_than_a_node_has_is_not_scheduled(http: httpx2.Client) -> None:
    created(http, f"{HOME}/pods", pod(container={"resources": {"limits": {"bitfusion.io/gpu": "50"}}}))
    until(lambda: "1 Insufficient bitfusion.io/gpu" in http.get(f"{HOME}/pods/p").text)


def test_images_print_what_the_world_says(http: httpx2.Client) -> None:
    created(http, f"{HOME}/pods", pod(image="printer:2"))
    until(lambda: phase(http) == "Succeeded")
    assert http.get(f"{HOME}/pods/p/log").text == "one\ntwo\n"


def test_a_job_completes_and_takes_its_pods_along(http: httpx2.Client, guest: RunningCluster) -> None:
    spec = {"completions": 3, "parallelism": 2, "template": {"spec": pod()["spec"]}}
    created(http, "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": spec})
    job = until(
        lambda: next((j for j in guest.cluster.all("batch", "jobs") if j["status"].get("conditions")), None)
    )
    assert (
        job["status"]["succeeded"],
        job["status"]["conditions"][-1]["type"],
        len(guest.cluster.all("", "pods")),
    ) == (3, "Complete", 3)
    http.delete("/apis/batch/v1/namespaces/default/jobs/j?propagationPolicy=Background")
    until(lambda: not guest.cluster.all("", "pods"))


def test_a_job_fails_beyond_its_backoff_limit(http: httpx2.Client, guest: RunningCluster) -> None:
    spec = {"backoffLimit": 1, "template": {"spec": pod(image="broken")["spec"]}}
    created(http, "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": spec})
    job = until(
        lambda: next((j for j in guest.cluster.all("batch", "jobs") if j["status"].get("conditions")), None)
    )
    assert (job["status"]["failed"], job["status"]["conditions"][-1]["reason"]) == (2, "BackoffLimitExceeded")


def test_a_deployment_becomes_available_and_rolls(http: httpx2.Client, guest: RunningCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    path = "/apis/apps/v1/namespaces/default/deployments"
    created(
        http,
        path,
        {
            "metadata": {"name": "d"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
    )
    ready = lambda: http.get(f"{path}/d").json()["status"].get("availableReplicas") == 2  # noqa: E731 - one expression with a name
    until(ready)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}}
    http.patch(
        f"{path}/d",
        content=json.dumps(patch),
        headers={"content-type": "application/strategic-merge-patch+json"},
    )
    until(
        lambda: (
            [each["spec"]["containers"][0]["image"] for each in guest.cluster.all("", "pods")]
            == ["x:2", "x:2"]
            and ready()
        )
    )
    http.delete(f"{path}/d?propagationPolicy=Foreground")
    until(lambda: not guest.cluster.all("", "pods") and http.get(f"{path}/d").status_code == 404)


def test_a_quota_refuses_what_goes_beyond_it(http: httpx2.Client, guest: RunningCluster) -> None:
    created(
        http,
        f"{HOME}/resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1", "requests.bitfusion.io/gpu": "100"}}},
    )
    created(http, f"{HOME}/secrets", {"metadata": {"name": "a"}})
    answer = http.post(f"{HOME}/secrets", json={"metadata": {"name": "b"}})
    assert (answer.status_code, answer.json()["message"]) == (
        403,
        (
            'secrets "b" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: '
            "secrets=1"
        ),
    )
    assert (
        http.post(
            f"{HOME}/pods", json=pod(container={"resources": {"limits": {"bitfusion.io/gpu": "101"}}})
        ).status_code
        == 403
    )
    until(
        lambda: (
            http.get(f"{HOME}/resourcequotas/q").json().get("status", {}).get("used", {}).get("secrets")
            == "1"
        )
    )


def test_a_namespace_goes_with_all_that_is_in_it(http: httpx2.Client) -> None:
    created(http, "/api/v1/namespaces", {"metadata": {"name": "x"}})
    created(
        http, "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "a", "finalizers": ["x.test/hold"]}}
    )
    assert http.delete("/api/v1/namespaces/x").json()["status"]["phase"] == "Terminating"
    assert http.post("/api/v1/namespaces/x/configmaps", json={"metadata": {"name": "b"}}).status_code == 403
    http.patch(
        "/api/v1/namespaces/x/configmaps/a",
        content='{"metadata":{"finalizers":null}}',
        headers={"content-type": "application/merge-patch+json"},
    )
    until(lambda: http.get("/api/v1/namespaces/x").status_code == 404)


def test_a_definition_is_served_checked_and_gone(http: httpx2.Client) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["n"],
                "properties": {
                    "n": {"type": "integer", "minimum": 1},
                    "s": {"type": "string", "default": "d"},
                },
            }
        },
    }
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    crd = {
        "metadata": {"name": "foos.x.test"},
        "spec": {
            "group": "x.test",
            "names": {"kind": "Foo", "plural": "foos"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }
    created(http, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    path = "/apis/x.test/v1/namespaces/default/foos"
    until(lambda: http.get(path).status_code == 200)
    assert created(http, path, {"metadata": {"name": "f"}, "spec": {"n": 1, "bogus": 2}})["spec"] == {
        "n": 1,
        "s": "d",
    }
    refused = http.post(path, json={"metadata": {"name": "g"}, "spec": {"n": 0}})
    assert refused.json()["message"] == (
        'Foo.x.test "g" is invalid: spec.n: Invalid value: 0: spec.n in body should be greater than or '
        "equal to 1"
    )
    http.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.x.test")
    until(lambda: http.get(path).status_code == 404)


def test_logs_objects_and_what_machines_know_survive_a_restart(
    http: httpx2.Client, guest: RunningCluster, clock: Clock
) -> None:
    created(http, f"{HOME}/pods", pod(image="printer:2"))
    until(lambda: phase(http) == "Succeeded")
    guest.cluster.remembered["drivers with a license"]["of a pod"] = "good"
    clock.rest(longest=60)
    again = RunningCluster("g", "v1.27.5", clock, OUTSIDE)
    again.restore(json.loads(json.dumps(guest.save())))
    again.start()
    clock.rest(longest=60)
    assert again.cluster.dump() == guest.cluster.dump()
    assert again.save()["logs"] == guest.save()["logs"]
    assert again.cluster.remembered["drivers with a license"] == {"of a pod": "good"}


def test_two_clusters_with_the_same_history_dump_equal(clock: Clock) -> None:
    dumps = []
    for _ in range(2):
        running = RunningCluster("g", "v1.27.5", clock, OUTSIDE)
        running.start()
        running.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
        until(lambda running=running: len(running.cluster.all("", "serviceaccounts")) == 4)
        spec = {"completions": 2, "template": {"spec": pod()["spec"]}}
        running.cluster.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "default"},
                "spec": spec,
            }
        )
        until(
            lambda running=running: (
                running.cluster.all("batch", "jobs")[0].get("status", {}).get("succeeded") == 2
            )
        )
        clock.rest(longest=60)
        dumps.append(running.cluster.dump())
    assert dumps[0] == dumps[1]
    assert len(dumps[0]["pods"]) == 2
