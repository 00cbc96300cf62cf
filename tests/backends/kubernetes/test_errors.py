from __future__ import annotations

import httpx2
import pytest

from bfinfra.backends.kubernetes import errors
from bfinfra.model.errors import Busy, Forbidden, Rejected, Unanswered

REQUEST = httpx2.Request("POST", "https://c/api/v1/namespaces/new/pods")


def refused(message: str) -> Exception:
    status = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "message": f'pods "p" is forbidden: {message}',
    }
    return errors.of_answer(httpx2.Response(403, json=status), REQUEST, "POST pods", "c")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('error looking up service account new/default: serviceaccount "default" not found', Busy),
        ('error looking up service account new/robot: serviceaccount "robot" not found', Forbidden),
        ("exceeded quota: pods=2", Rejected),
    ],
)
def test_only_the_account_that_every_namespace_gets_is_waited_for(message, kind):
    assert type(refused(message)) is kind


LACKING = """user "u" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], Verbs:["get"]}
{NonResourceURLs:["/metrics"], Verbs:["get"]}"""


@pytest.mark.parametrize(
    ("path", "verb"),
    [
        ("clusterroles", "escalate clusterroles"),
        ("clusterrolebindings", "bind clusterroles"),
        ("namespaces/x/roles/r", "escalate roles"),
        ("namespaces/x/rolebindings", "bind roles, or clusterroles,"),
    ],
)
def test_granting_rights_one_lacks_names_the_right_that_would_allow_it_and_those_missing(path, verb):
    status = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "message": f'clusterroles.rbac.authorization.k8s.io "r" is forbidden: {LACKING}',
    }
    request = httpx2.Request("POST", f"https://c/apis/rbac.authorization.k8s.io/v1/{path}")
    message = str(errors.of_answer(httpx2.Response(403, json=status), request, "POST roles", "c"))
    assert (
        f"the right to {verb} is missing, or else all that the role gives, of which the account lacks "
        "get,list secrets; get deployments a; get /metrics"
    ) in message


@pytest.mark.parametrize(("method", "verb"), [("GET", "watch"), ("PATCH", "create"), ("GET", "list")])
def test_the_missing_right_is_the_one_that_the_server_names(method: str, verb: str) -> None:
    message = f'jobs.batch is forbidden: User "u" cannot {verb} resource "jobs" in API group "batch" in the namespace "x"'
    status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": message}
    request = httpx2.Request(method, "https://c/apis/batch/v1/namespaces/x/jobs")
    found = str(errors.of_answer(httpx2.Response(403, json=status), request, "GET jobs", "c"))
    assert f"the right to {verb} jobs in namespace x is missing" in found


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("etcdserver: request is too large", Rejected),
        ("failed to create typed patch object: .spec.x: field not declared", Rejected),
        ("etcdserver: request timed out", Unanswered),
    ],
)
def test_what_time_does_not_mend_is_no_lost_answer(message, kind):
    status = {"kind": "Status", "status": "Failure", "message": message, "code": 500}
    assert type(errors.of_answer(httpx2.Response(500, json=status), REQUEST, "POST pods", "c")) is kind
