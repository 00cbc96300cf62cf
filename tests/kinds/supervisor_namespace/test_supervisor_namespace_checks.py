"""What the doctor says of supervisors and of the certificates of what is on them."""

from __future__ import annotations

from kinds.checking import BAD, GOOD, SKIPPED, checks_on, diagnosed, messages, one
from kinds.lifecycle import EXAMPLES, apply, made

from bfinfra.backends.vcenter.namespaces import Catalog, Namespaces, Supervisor
from bfinfra.kinds.supervisor.supervisor_namespace.checks import certificates, supervisors
from bfinfra.kinds.supervisor.tanzu_cluster.checks import tanzu


def test_a_supervisor_that_does_not_run(sandbox, monkeypatch):
    with checks_on(sandbox, "tanzu_cluster") as context:
        monkeypatch.setattr(
            Namespaces, "catalog", lambda *_: Catalog({"compute": Supervisor("domain-c1", "", running=False)})
        )
        assert one(supervisors(context))[0] is BAD
        assert "Workload Management" in one(supervisors(context))[1]
        assert one(tanzu(context)) == (
            SKIPPED,
            (
                "tanzu_cluster/cluster-01: whether run.tanzu.vmware.com/v1alpha1 is served: no supervisor "
                "runs on compute → "
            ),
        )
        assert list(certificates(context)) == []


def test_a_supervisor_that_serves_no_such_api(sandbox, monkeypatch):
    with checks_on(sandbox, "tanzu_cluster") as context:
        monkeypatch.setattr("bfinfra.backends.kubernetes.ClusterClient.serves", lambda *_: False)
        assert "kubectl api-versions" in one(tanzu(context))[1]


def test_supervisors_and_the_clusters_in_them_show_their_certificates(sandbox):
    assert made(apply(EXAMPLES["tanzu_cluster"], sandbox))
    found = [
        each
        for each in diagnosed(EXAMPLES["tanzu_cluster"], sandbox)
        if each.check == "clusters.certificates"
    ]
    assert [each.health for each in found] == [GOOD] * 3
    assert [each.about.rpartition(":")[2] for each in found] == ["443", "6443", "6443"]
    assert [each.about.partition(" 10.")[0] for each in found] == ["supervisor on compute"] * 2 + [
        "tanzu_cluster/cluster-01"
    ]


def test_nobody_logs_in_to_a_supervisor_whose_certificate_is_not_trusted(sandbox, tmp_path):
    assert made(apply(EXAMPLES["tanzu_cluster"], sandbox))
    text = (
        EXAMPLES["tanzu_cluster"]
        .read_text()
        .replace(
            "  trust: {ca_file: ca.pem}",
            f"  trust: {{ca_file: ca.pem}}\n  supervisor_trust: {{sha256: '{'ab' * 32}'}}",
        )
    )
    (tmp_path / "site.yaml").write_text(text)
    before = sandbox.tally()["calls"]
    found = diagnosed(tmp_path / "site.yaml", sandbox)
    assert "bfinfra trust 10." in messages(found, BAD)["clusters.certificates"]
    assert set(messages(found, BAD)) == {"clusters.certificates"}
    assert "certificate is not trusted" in messages(found, SKIPPED)["clusters.entrance"]
    assert messages(found, SKIPPED)["clusters.tanzu"]
    after = sandbox.tally()["calls"]
    assert {api: calls for api, calls in after.items() if api not in ("vcenter", "rest")} == {
        api: calls for api, calls in before.items() if api not in ("vcenter", "rest")
    }
