"""What the doctor says of clusters by kubeconfig."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kinds.checking import BAD, GOOD, WARNING, checks_on, one

from bfinfra.kinds.source.kubernetes_cluster import KubernetesCluster, files
from bfinfra.model.rights import Verb


@pytest.mark.parametrize(
    ("version", "health", "words"),
    [
        ("v1.15.12", BAD, "server-side apply"),
        ("v1.17.3", GOOD, "v1.17.3"),
        ("v1.99.0", WARNING, "try it with plan first"),
        ("v1.25.3", GOOD, "v1.25.3"),
    ],
)
def test_versions_of_clusters(sandbox, monkeypatch, version, health, words):
    monkeypatch.setattr("bfinfra.backends.kubernetes.ClusterClient.version", lambda _: version)
    with checks_on(sandbox, "kubernetes_cluster") as context:
        found = one(KubernetesCluster.checks["clusters.versions"](context))
    assert found[0] is health
    assert words in found[1]


def test_a_cluster_whose_clock_is_off(sandbox):
    with checks_on(
        sandbox, "kubernetes_cluster", now=lambda: datetime.now(UTC) - timedelta(minutes=10, seconds=1)
    ) as context:
        health, words = one(KubernetesCluster.checks["clusters.clocks"](context))
    assert health is WARNING
    assert "s ahead of ours" in words
    assert "NTP" in words


def test_a_right_that_one_can_do_without(sandbox, monkeypatch):
    monkeypatch.setattr(
        "bfinfra.backends.kubernetes.ClusterClient.can", lambda _, verb, resource, *__: resource != "spares"
    )
    with checks_on(sandbox, "namespace") as context:
        api = next(api for api in context.rights.apis if api.cluster.kind == "kubernetes_cluster")
        optional = replace(
            context,
            rights=replace(context.rights, apis={api: (Verb("spares", "list", "then it looks less"),)}),
        )
        health, words = one(KubernetesCluster.checks["clusters.rights"](optional))
    assert health is WARNING
    assert "may not list spares" in words
    assert "then it looks less" in words


def test_a_file_of_secrets_that_is_its_owners_own(sandbox):
    with checks_on(sandbox, "kubernetes_cluster") as context:
        assert list(files(context)) == []
        config = Path(sandbox.files) / "other.kubeconfig"
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
