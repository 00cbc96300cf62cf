from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pydantic import ValidationError
from rights.given import other

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.kinds.cluster.network_path.decide import Clear, Delete, State, Try
from bfinfra.kinds.cluster.network_path.kind import NetworkPath, _found
from bfinfra.kinds.cluster.network_path.policies import Judged, judge
from bfinfra.kinds.cluster.network_path.probe import TRIED, read
from bfinfra.kinds.cluster.network_path.spec import Spec
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Ready
from bfinfra.model.refs import Key

SERVER = "172.16.31.211"
MARK = Mark("s", "network_path/n")
AT: Any = {"cluster": "c", "namespace": "default", "home": Endpoint()}
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def written(**changes: Any) -> Spec:
    return Spec.model_validate(
        {"cluster": "c", "addresses": [SERVER], "ports": [56001, 45201], "pods": {"app": "train"}, **changes}
    )


def policy(*rules: Any, **selector: Any) -> Any:
    return {
        "metadata": {"name": "p"},
        "spec": {"podSelector": selector, "policyTypes": ["Egress"], "egress": list(rules)},
    }


BLOCK = {"ipBlock": {"cidr": "172.16.31.0/24"}}


@pytest.mark.parametrize(
    ("policies", "blocked"),
    [
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
        (
            [
                policy(
                    matchExpressions=[
                        {"key": "app", "operator": "Exists"},
                        {"key": "team", "operator": "DoesNotExist"},
                    ]
                )
            ],
            [56001, 45201],
        ),
        ([{"metadata": {"name": "in"}, "spec": {"podSelector": {}, "ingress": []}}], []),
    ],
)
def test_policies_are_read_as_kubernetes_reads_them(policies, blocked):
    found = judge(written(), [SERVER], policies)
    assert [where for where, _ in found.blocked] == [f"{SERVER}:{port}" for port in blocked]
    assert found.checked == 2


def context(facts: Any = None, **needs: ResolvedRef) -> PlanContext:
    return PlanContext(
        MARK,
        {
            "cluster": ResolvedRef(
                Key("kubernetes_cluster", "c"), None, SimpleNamespace(endpoint=Endpoint())
            ),
            **needs,
        },
        facts=facts,
    )


def steps(spec: Spec | None, state: State | None, **more: Any) -> Any:
    return NetworkPath.steps("n", spec, state, context(**more))


def existing(spec: Spec, status: Any = None, *words: str, fresh: bool = False) -> State:
    """The state after the probe's Job ran like that; `words`: the last of its pod."""
    (start,) = steps(spec, None)
    job = {**start.manifest, "status": status or {"conditions": [{"type": "Complete", "status": "True"}]}}
    pod = {
        "metadata": {"name": "p"},
        "status": {
            "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": "\n".join(words)}}}]
        },
    }
    return State(mark=mark_of(job), probe=read(job, [pod], fresh=fresh), **AT)


FAILED = {
    "conditions": [
        {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}
    ]
}


def test_a_blocked_path_is_refused_by_the_plan_and_names_the_policies():
    found = judge(written(), [SERVER], [policy()])
    with pytest.raises(Refusal, match=f"{SERVER}:56001: allowed by none of p; {SERVER}:45201"):
        steps(written(), None, facts={"n": found})
    assert (
        NetworkPath.ready(object.__new__(NetworkPath), written(), State(policies=found, **AT)).status
        is Ready.FAILED
    )
    assert steps(written(), State(policies=Judged(checked=2), **AT)) == ()


def test_a_probe_is_a_job_that_pod_security_restricted_accepts():
    (start,) = steps(written(probe={"image": "reg/busybox:1", "patience": "10s"}), None)
    assert isinstance(start, Try)
    assert (start.manifest["kind"], start.manifest["metadata"]["name"]) == ("Job", "bfinfra-path-n")
    template = start.manifest["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "train", "bfinfra.io/site": "s"}
    pod, (container,) = template["spec"], template["spec"]["containers"]
    assert container["command"][3:] == ["probe", "10", f"{SERVER}:56001", f"{SERVER}:45201"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]) == (
        True,
        {"type": "RuntimeDefault"},
    )
    assert (
        container["securityContext"]["allowPrivilegeEscalation"],
        container["securityContext"]["capabilities"],
    ) == (False, {"drop": ["ALL"]})
    assert not pod["automountServiceAccountToken"]


def test_what_was_tried_is_not_tried_again_and_something_else_is():
    spec = written(probe={})
    assert steps(spec, existing(spec)) == ()
    clear, again = steps(written(probe={}, ports=[56001]), existing(spec))
    assert (type(clear), type(again)) == (Clear, Try)
    assert ("paths", [f"{SERVER}:56001", f"{SERVER}:45201"], [f"{SERVER}:56001"]) in [
        (c.field, c.now, c.wanted) for c in clear.changes
    ]
    for changed in ({"image": "other"}, {"patience": "5s"}):
        assert [type(each) for each in steps(written(probe=changed), existing(spec))] == [Clear, Try]


def test_a_changed_token_is_tried_anew_and_one_that_is_not_there_yet_is_tried_later():
    spec = written(token="t", probe={})
    token = lambda *servers: ResolvedRef(  # noqa: E731 - a value's short form
        Key("bitfusion_token", "t"), None, SimpleNamespace(servers=[(each, 56001) for each in servers])
    )
    (start,) = steps(spec, None, token=token("10.0.0.1"))
    state = State(
        mark=mark_of(start.manifest),
        probe=read(
            {
                **start.manifest,
                "status": existing(written(probe={}))
                and {"conditions": [{"type": "Complete", "status": "True"}]},
            },
            (),
            fresh=False,
        ),
        **AT,
    )
    assert steps(spec, state, token=token("10.0.0.1")) == ()
    (change,) = steps(spec, state, token=token("10.0.0.2"))[0].changes
    assert (change.field, change.wanted[0]) == ("paths", "10.0.0.2:56001")
    (late,) = steps(spec, None, token=ResolvedRef(Key("bitfusion_token", "t"), None, None))
    assert late.manifest == Unknown(Key("bitfusion_token", "t"), "servers")
    assert steps(spec, state, token=ResolvedRef(Key("bitfusion_token", "t"), None, None)) == ()


def test_what_failed_is_tried_by_the_next_apply_and_not_again_by_the_same():
    spec = written(probe={})
    words = (f"{SERVER}:56001 reached", f"{SERVER}:45201 not reached: nc: connection refused")
    clear, again = steps(spec, existing(spec, FAILED, *words))
    assert (type(clear), type(again)) == (Clear, Try)
    assert [(c.field, c.now, c.wanted) for c in clear.changes] == [
        ("probe", f"{SERVER}:45201 not reached", "all 2 ways reached")
    ]
    assert steps(spec, existing(spec, FAILED, *words, fresh=True)) == ()


@pytest.mark.parametrize(
    ("status", "words", "ready", "says"),
    [
        (None, (), Ready.READY, ""),
        (
            FAILED,
            (f"{SERVER}:45201 not reached",),
            Ready.FAILED,
            f"a pod in x tried: {SERVER}:45201 not reached; is the server up, and do routes",
        ),
        (
            FAILED,
            ("there is no nc in this image",),
            Ready.FAILED,
            "there is no nc in this image; it needs an image with sh and nc",
        ),
        (FAILED, (), Ready.FAILED, "Job has reached the specified backoff limit"),
        ({"active": 1, "ready": 1}, (), Ready.WAITING, "tries 2 paths"),
        ({"active": 1, "ready": 0}, (), Ready.WAITING, "its pod isn't ready yet"),
    ],
)
def test_its_result_is_what_the_apply_waits_for_and_names_each_way_that_could_not_be_gone(
    status, words, ready, says
):
    state = existing(written(probe={}), status, *words)
    assert state.probe is not None
    found = _found(state.probe, "a pod in x")
    assert found.status is ready
    assert says in found.why


@pytest.mark.parametrize(
    ("reason", "phase"), [("ImagePullBackOff", "waiting"), ("InvalidImageName", "failed")]
)
def test_an_image_that_can_not_be_pulled_is_reported(reason, phase):
    (start,) = steps(written(probe={}), None)
    pod = {
        "metadata": {"name": "p"},
        "status": {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "401"}}}]},
    }
    found = read({**start.manifest, "status": {"active": 1, "ready": 0}}, [pod], fresh=True)
    assert (found.phase, found.why) == (phase, f"{reason}: 401")


def test_a_path_that_goes_or_wants_no_probe_any_more_takes_the_job_along():
    spec = written(probe={})
    assert [type(each) for each in steps(None, existing(spec))] == [Delete]
    assert [type(each) for each in steps(written(), existing(spec))] == [Delete]
    state = existing(spec)
    assert state.probe is not None
    assert steps(None, replace(state, probe=replace(state.probe, going=True))) == ()


def test_a_job_of_others_in_its_place_is_not_touched():
    with pytest.raises(Refusal, match="the Job b"):
        steps(written(probe={}), State(foreign="the Job b was not made by bfinfra", **AT))


@pytest.mark.parametrize(
    "changes", [{"addresses": []}, {"addresses": ["1.2.3"]}, {"ports": []}, {"ports": [0]}]
)
def test_what_can_not_be_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


def test_a_policy_that_somebody_makes_in_the_cluster_stops_the_plan(sandbox):
    path = EXAMPLES["network_path"]
    assert made(apply(path, sandbox))
    other(sandbox).call(
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        {"metadata": {"name": "deny"}, "spec": policy()["spec"]},
    )
    (problem,) = plan(path, sandbox).problems
    assert "10.3.0.1:6443: allowed by none of deny" in str(problem)


def test_a_probe_that_fails_says_which_way_and_is_drift_until_it_is_mended(sandbox, tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(EXAMPLES["network_path"].read_text().replace("[6443]", "[6443, 56001]"))
    outcome = apply(path, sandbox)
    (message,) = [text for text in endings(outcome).values() if text.startswith("failed")]
    assert (
        "a pod in namespace default of other tried: 10.3.0.1:56001 not reached; is the server up" in message
    )
    assert "6443" not in message
    assert other(sandbox).call("GET", f"{JOBS}/bfinfra-path-pods-to-servers")["metadata"]["annotations"][
        TRIED
    ]
    (found,) = drift(path, sandbox).found
    assert (found.field, found.now, found.wanted) == (
        "probe",
        "10.3.0.1:56001 not reached",
        "all 2 ways reached",
    )
    path.write_text(EXAMPLES["network_path"].read_text())
    assert made(apply(path, sandbox))
    other(sandbox).call("DELETE", f"{JOBS}/bfinfra-path-pods-to-servers?propagationPolicy=Background")
    (lacking,) = drift(path, sandbox).found
    assert str(lacking.key) == "network_path/pods-to-servers"


def test_a_stranger_in_the_probes_place_stops_the_plan_and_stays(sandbox):
    body = {
        "metadata": {"name": "bfinfra-path-pods-to-servers"},
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
        },
    }
    other(sandbox).call("POST", JOBS, body)
    (problem,) = plan(EXAMPLES["network_path"], sandbox).problems
    assert "was not made by bfinfra" in str(problem)
    assert plan(EXAMPLES["network_path"], sandbox, destroy=True).pending == ()
