"""Who gives rights: the table that kube-apiserver is held to as well (tests/peers/test_rights.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grants
import pytest
from kube_serving import APPLY, Served

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize("table", grants.TABLE, ids=lambda each: each.__name__)
def test_an_account_that_gives_rights(served: Served, table: Any) -> None:
    with served.http() as admin, served.http(served.cluster.account_token("default", "robot", 60)) as robot:
        admin.post(
            f"{RBAC}/clusterrolebindings",
            json={
                "metadata": {"name": "of-robot"},
                "roleRef": {"apiGroup": RBAC.split("/")[2], "kind": "ClusterRole", "name": "of-robot"},
                "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
            },
        )

        def give(rules: list[Mapping[str, Any]]) -> None:
            admin.delete(f"{RBAC}/clusterroles/of-robot")
            assert (
                admin.post(
                    f"{RBAC}/clusterroles", json={"metadata": {"name": "of-robot"}, "rules": rules}
                ).status_code
                == 201
            )

        def call(method: str, path: str, body: Any) -> tuple[int, str]:
            patching = method == "PATCH"
            found = robot.request(
                method,
                path,
                json=body,
                params={"fieldManager": "t"} if patching else None,
                headers={"content-type": APPLY} if patching else None,
            )
            return found.status_code, found.json().get("message", "") if "json" in found.headers[
                "content-type"
            ] else found.text

        table(call, give, "robot")
