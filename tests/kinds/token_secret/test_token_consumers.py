"""Who uses a token: the pods that name its Secrets, and what would start them again."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.cluster.token_secret.consumers import Consumer, consumers, secrets_of

Object = dict[str, Any]
TOKEN = ("bfinfra.io/token", "new")
REPLACED, BEFORE, AFTER = "2026-01-01T00:01:00+00:00", "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"
SPEC = {"volumes": [{"secret": {"secretName": "bitfusion-secret"}}]}


def owner(kind: str, name: str) -> Object:
    return {
        "ownerReferences": [{"kind": "Node", "name": "n"}, {"kind": kind, "name": name, "controller": True}]
    }


def pod(name: str = "p", of: tuple[str, str] | None = None, at: str = BEFORE, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "a", "creationTimestamp": at, **(owner(*of) if of else {})}
    return {"metadata": {**metadata, **more.pop("metadata", {})}, "spec": SPEC, **more}


class Workloads:
    """A cluster with these workloads: kind and name → object."""

    def __init__(self, **objects: Object) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._objects = objects

    def get(self, api: str, kind: str, name: str, namespace: str) -> Object | None:
        self.asked.append((api, kind, name, namespace))
        return self._objects.get(f"{kind}_{name}")


def found(*pods: Object, since: str | None = REPLACED, cluster: Workloads | None = None) -> list[Consumer]:
    secrets = {("a", "bitfusion-secret"): since}
    at: Any = cluster or Workloads()
    return [*consumers(at, "k", pods, secrets, TOKEN)]


def names(*pods: Object, since: str | None = REPLACED) -> list[str]:
    return [each.name for each in found(*pods, since=since)]


def late(*pods: Object, since: str | None = REPLACED) -> list[bool]:
    return [each.late for each in found(*pods, since=since)]


def test_a_pod_uses_the_secrets_of_its_volumes_and_projections_and_of_all_its_containers_variables():
    def container(name: str) -> Object:
        key: Object = {"key": "k"}
        return {
            "env": [
                {"name": "plain", "value": "v"},
                {"name": "field", "valueFrom": {"fieldRef": {}}},
                {"name": "secret", "valueFrom": {"secretKeyRef": {**key, "name": f"{name}-env"}}},
            ],
            "envFrom": [{"configMapRef": {"name": "no"}}, {"secretRef": {"name": f"{name}-all"}}],
        }

    spec = {
        "volumes": [
            {"emptyDir": {}},
            {"secret": {"secretName": "volume"}},
            {"projected": {"sources": [{"configMap": {"name": "no"}}, {"secret": {"name": "projected"}}]}},
            {"projected": {}},
        ],
        "initContainers": [container("init"), {}],
        "containers": [{}, container("main")],
    }
    assert secrets_of({"spec": spec}) == {
        "volume",
        "projected",
        "init-env",
        "init-all",
        "main-env",
        "main-all",
    }
    assert secrets_of({}) == set()


def test_a_pod_that_ended_or_goes_uses_no_token_and_does_not_hide_the_others():
    assert names(
        pod("going", metadata={"deletionTimestamp": AFTER}),
        pod("succeeded", status={"phase": "Succeeded"}),
        pod("failed", status={"phase": "Failed"}),
        pod("elsewhere", metadata={"namespace": "b"}),
        pod("without", spec={}),
        pod("running", status={"phase": "Running"}),
        pod("unseen"),
    ) == ["running", "unseen"]


@pytest.mark.parametrize(
    ("made", "replaced", "is_late"),
    [
        (BEFORE, REPLACED, [True]),
        (REPLACED, REPLACED, [False]),
        (AFTER, REPLACED, []),
        (AFTER, None, [True]),
        (BEFORE, "", []),
        ("", REPLACED, []),
        (BEFORE, "2026-01-01T00:01:00", []),
    ],
    ids=["before", "same second", "after", "still stale", "unknown", "no time", "a time without a zone"],
)
def test_a_pod_has_the_earlier_token_if_it_started_before_the_token_was_replaced(made, replaced, is_late):
    assert late(pod(at=made), since=replaced) == is_late


def test_a_pod_whose_start_nobody_knows_is_not_called_old():
    unknown = pod()
    del unknown["metadata"]["creationTimestamp"]
    assert names(unknown) == []


def test_a_pod_is_late_for_one_of_its_secrets_and_not_for_one_whose_time_is_unknown():
    both = [{"secret": {"secretName": name}} for name in ("one", "two")]
    at: Any = Workloads()

    def judged(one: str | None, two: str | None) -> list[bool]:
        since = {("a", "one"): one, ("a", "two"): two}
        started = pod(at=REPLACED, spec={"volumes": both})
        return [each.late for each in consumers(at, "k", [started], since, TOKEN)]

    assert (judged(REPLACED, ""), judged(AFTER, REPLACED)) == ([False], [True])
    assert (judged("", None), judged("", "")) == ([True], [])


@pytest.mark.parametrize("order", [1, -1])
def test_a_workload_is_late_as_long_as_one_of_its_pods_is(order):
    pods = [pod("p1", ("StatefulSet", "web")), pod("p2", ("StatefulSet", "web"), at=REPLACED)]
    assert late(*pods[::order]) == [True]


def test_a_pod_counts_for_the_workload_that_would_start_it_again_else_for_itself():
    there = Workloads(
        ReplicaSet_web={"metadata": owner("Deployment", "web")},
        ReplicaSet_bare={"metadata": {}},
        Deployment_web={"metadata": {}, "spec": {"template": {"metadata": {"annotations": dict([TOKEN])}}}},
        StatefulSet_db={
            "metadata": {},
            "spec": {"template": {"metadata": {"annotations": {TOKEN[0]: "old"}}}},
        },
    )
    listed = found(
        pod("alone"),
        pod("of-bare", ("ReplicaSet", "bare")),
        pod("of-gone", ("ReplicaSet", "gone")),
        pod("w1", ("ReplicaSet", "web")),
        pod("w2", ("ReplicaSet", "web")),
        pod("d", ("StatefulSet", "db")),
        pod("s", ("DaemonSet", "gone")),
        pod("j", ("Job", "train")),
        cluster=there,
    )
    assert [(each.kind, each.name, each.controlled, each.notified) for each in listed] == [
        ("DaemonSet", "gone", True, False),
        ("Deployment", "web", True, True),
        ("Job", "train", False, False),
        ("Pod", "alone", False, False),
        ("Pod", "of-bare", False, False),
        ("Pod", "of-gone", False, False),
        ("StatefulSet", "db", True, False),
    ]
    assert {(each.namespace, each.cluster) for each in listed} == {("a", "k")}
    assert sorted(there.asked) == sorted(
        ("apps/v1", kind, name, "a")
        for kind, name in (
            ("DaemonSet", "gone"),
            ("Deployment", "web"),
            ("ReplicaSet", "bare"),
            ("ReplicaSet", "gone"),
            ("ReplicaSet", "web"),
            ("StatefulSet", "db"),
        )
    )
