from __future__ import annotations

from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, made, plan
from pydantic import ValidationError
from rights.given import other

from bfinfra.kinds.network_path import NetworkPath, Spec, State, judge
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Ready
from bfinfra.model.mark import Mark

SERVER = "172.16.31.211"


def written(**changes: Any) -> Spec:
    return Spec.model_validate({"cluster": "c", "addresses": [SERVER], "ports": [56001, 45201], "pods": {"app": "train"}, **changes})


def policy(*rules: Any, **selector: Any) -> Any:
    return {"metadata": {"name": "p"}, "spec": {"podSelector": selector, "policyTypes": ["Egress"], "egress": list(rules)}}


BLOCK = {"ipBlock": {"cidr": "172.16.31.0/24"}}


@pytest.mark.parametrize(("policies", "blocked"), [
    ([], []),
    ([policy()], [56001, 45201]),
    ([policy({})], []),
    ([policy({"to": [BLOCK]})], []),
    ([policy({"to": [{"ipBlock": {**BLOCK["ipBlock"], "except": [f"{SERVER}/32"]}}]})], [56001, 45201]),
    ([policy({"to": [{"podSelector": {}}]})], [56001, 45201]),
    ([policy({"to": [BLOCK], "ports": [{"port": 56001}]})], [45201]),
    ([policy({"ports": [{"port": 45000, "endPort": 46000}, {"port": "https"}]})], [56001]),
    ([policy({"ports": [{"protocol": "UDP", "port": 56001}, {"port": 45201}]})], [56001]),
    ([policy({"ports": [{"port": 56001}]}), policy({"ports": [{"port": 45201}]})], []),
    ([policy(matchLabels={"app": "web"})], []),
    ([policy(matchLabels={"app": "train"})], [56001, 45201]),
    ([policy(matchExpressions=[{"key": "app", "operator": "NotIn", "values": ["train"]}])], []),
    ([policy(matchExpressions=[{"key": "app", "operator": "Exists"}, {"key": "team", "operator": "DoesNotExist"}])], [56001, 45201]),
    ([{"metadata": {"name": "in"}, "spec": {"podSelector": {}, "ingress": []}}], []),
])
def test_policies_are_read_as_kubernetes_reads_them(policies, blocked):
    found = judge(written(), [SERVER], policies)
    assert [where for where, _ in found.blocked] == [f"{SERVER}:{port}" for port in blocked]
    assert found.checked == 2


def test_a_blocked_path_is_refused_by_the_plan_and_names_the_policies():
    state = judge(written(), [SERVER], [policy()])
    with pytest.raises(Refusal, match=f"{SERVER}:56001: allowed by none of p; {SERVER}:45201"):
        NetworkPath.steps("n", written(), state, Around(Mark("s", "network_path/n")))
    assert NetworkPath.ready(object.__new__(NetworkPath), written(), state).status is Ready.FAILED
    assert NetworkPath.steps("n", written(), State(), Around(Mark("s", "network_path/n"))) == ()


@pytest.mark.parametrize("changes", [{"addresses": []}, {"addresses": ["1.2.3"]}, {"ports": []}, {"ports": [0]}])
def test_what_can_not_be_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


def test_a_policy_that_somebody_makes_in_the_cluster_stops_the_plan(sandbox):
    path = EXAMPLES["network_path"]
    assert made(apply(path, sandbox))
    other(sandbox).call("POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {"metadata": {"name": "deny"}, "spec": policy()["spec"]})
    (problem,) = plan(path, sandbox).problems
    assert "10.2.0.5:56001: allowed by none of deny" in str(problem)
