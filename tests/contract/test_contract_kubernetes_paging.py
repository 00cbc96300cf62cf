"""Lists that come in several pages, whole or as names only; and the rest of a list that the server has
forgotten (410).
"""

from __future__ import annotations

from typing import Any

import pytest
from contract.calls import Account, call
from contract.sides import KubernetesSide

from bfinfra.backends.kubernetes import connection
from bfinfra.backends.kubernetes.cluster import ClusterClient
from bfinfra.model.errors import Busy, Rejected


def events(cluster: ClusterClient, space: str, count: int) -> None:
    """Events, of which a kube-apiserver keeps no lists in memory: their pages come from etcd."""
    for number in range(count):
        about = {"kind": "Namespace", "name": space, "namespace": space}
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"e{number}", "namespace": space},
                "involvedObject": about,
                "reason": "Test",
                "type": "Normal",
            }
        )


@call("cluster.find", case="page by page, as names only")
def test_many_names_come_in_pages(
    kubernetes: KubernetesSide, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAGES", (2, 1))
    cluster = kubernetes.open()
    for number in range(5):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"n{number}", "namespace": space},
            "data": {"of": f"n{number}"},
        }
        cluster.create(body)
    found = cluster.find("v1", "ConfigMap", [(space, f"n{n}") for n in range(9)], space)
    assert [each["data"]["of"] for each in found] == [f"n{n}" for n in range(5)]


@pytest.mark.parametrize("how", ["list", "find"])
@call("cluster.list", "cluster.find", case="the rest of the list is too old (410): busy, to be read anew")
def test_a_rest_that_is_too_old_is_read_anew(
    how: str, kubernetes: KubernetesSide, space: str, monkeypatch: pytest.MonkeyPatch, account: Account
) -> None:
    monkeypatch.setattr(connection, "PAGES", (2, 1))
    cluster = kubernetes.open()
    events(cluster, space, 5)

    def read() -> Any:
        return (
            cluster.list("v1", "Event", space)
            if how == "list"
            else cluster.find("v1", "Event", [(space, f"e{n}") for n in range(5)], space)
        )

    kubernetes.forget_pages()
    with account.refused(Busy):
        read()
    kubernetes.remember_pages()
    assert len(read()) == 5


@call("cluster.list", case="a page that nobody opened")
def test_a_page_that_nobody_opened_is_rejected(
    kubernetes: KubernetesSide, space: str, account: Account
) -> None:
    cluster = kubernetes.open()
    with account.refused(Rejected):
        cluster._json(f"/api/v1/namespaces/{space}/configmaps", {"limit": "2", "continue": "nobody's"})
