from __future__ import annotations

import httpx2
import pytest

from bfinfra.backends.kubernetes import errors
from bfinfra.model.errors import Busy, Denied, Rejected

REQUEST = httpx2.Request("POST", "https://c/api/v1/namespaces/new/pods")


def refused(message: str) -> Exception:
    status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": f'pods "p" is forbidden: {message}'}
    return errors.of_answer(httpx2.Response(403, json=status), REQUEST, "POST pods", "c")


@pytest.mark.parametrize(("message", "kind"), [
    ('error looking up service account new/default: serviceaccount "default" not found', Busy),
    ('error looking up service account new/robot: serviceaccount "robot" not found', Denied),
    ("exceeded quota: pods=2", Rejected),
])
def test_only_the_account_that_every_namespace_gets_is_waited_for(message, kind):
    assert type(refused(message)) is kind
