from __future__ import annotations

import json

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply
from trust.authority import Authority
from trust.listening import listening

from bfinfra.backends import tls
from bfinfra.cli import main

LOOKED = ["subject  CN=127.0.0.1", "issuer   CN=test authority", "names    127.0.0.1", "valid    20"]


@pytest.fixture
def shown(tmp_path):
    return Authority(tmp_path).leaf()


@pytest.fixture
def server(shown):
    with listening(shown.file) as found:
        yield found


def test_a_server_is_shown_with_the_line_that_trusts_it_and_ends_with_1(server, shown, capsys):
    assert main(["trust", f"127.0.0.1:{server.port}"]) == 1
    out = capsys.readouterr().out
    for part in (
        *LOOKED,
        "no: unable to get local issuer certificate",
        f'trust: {{sha256: "{tls.colons(shown.sha256)}"}}',
    ):
        assert part in out
    assert server.asked == []


def test_the_line_that_it_prints_is_what_a_site_takes(server, shown, capsys, tmp_path):
    main(["trust", f"127.0.0.1:{server.port}"])
    line = capsys.readouterr().out.splitlines()[-1].strip()
    assert _site(tmp_path, server, yaml.safe_load(line)["trust"], capsys)[0] == 0


def test_a_sites_servers_are_held_against_what_the_site_says(server, shown, capsys, tmp_path):
    (tmp_path / "ca.pem").write_text(shown.ca)
    code, out = _site(tmp_path, server, {"ca_file": "ca.pem"}, capsys)
    assert (code, out["trusted"], out["trusted_by"], out["what"]) == (0, True, "ca.pem", "vcenter")
    code, out = _site(tmp_path, server, {"sha256": "ab" * 32}, capsys)
    assert (code, out["trusted"]) == (1, False)
    assert out["sha256"] in out["objection"]
    assert "AB:AB" in out["objection"]
    assert server.asked == []


def test_clusters_by_kubeconfig_are_servers_of_the_site_too(server, shown, capsys, tmp_path):
    (tmp_path / "kubeconfig").write_text(
        yaml.safe_dump(
            {
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": {"token": "a-token"}}],
            }
        )
    )
    (tmp_path / "site.yaml").write_text(
        "site: s\nkubernetes_cluster:\n  other: {kubeconfig: {file: kubeconfig}}\n"
    )
    assert main(["--output", "json", "trust", str(tmp_path / "site.yaml")]) == 1
    (found,) = json.loads(capsys.readouterr().out)["servers"]
    assert (found["what"], found["server"]) == ("kubernetes_cluster/other", f"127.0.0.1:{server.port}")
    assert server.asked == []


def test_nothing_is_written(server, tmp_path, monkeypatch):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "BFINFRA_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    before = sorted(tmp_path.rglob("*"))
    main(["trust", f"127.0.0.1:{server.port}"])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("target", ["127.0.0.1:1", "no.such.name.test:443"])
def test_nobody_there_says_so(target, capsys):
    assert main(["trust", target]) == 1
    assert "it shows no certificate" in capsys.readouterr().err


def _site(folder, server, trust, capsys):
    text = {"site": "s", "vcenter": {"server": f"127.0.0.1:{server.port}", "trust": trust}}
    (folder / "site.yaml").write_text(yaml.safe_dump(text))
    code = main(["--output", "json", "trust", str(folder / "site.yaml")])
    (found,) = json.loads(capsys.readouterr().out)["servers"]
    return code, found


def test_supervisors_and_their_clusters_are_shown_once_vcenter_is_trusted(
    sandbox, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr("bfinfra.cli.context.sandbox", lambda _: sandbox)
    example = EXAMPLES["tanzu_cluster"]
    apply(example, sandbox)
    assert main(["--output", "json", "trust", str(example)]) == 0
    found = json.loads(capsys.readouterr().out)["servers"]
    assert [each["what"] for each in found] == [
        "vcenter",
        "supervisor on compute",
        "supervisor on compute",
        "tanzu_cluster/cluster-01",
    ]
    assert all(each["trusted"] for each in found)
    (tmp_path / "site.yaml").write_text(
        example.read_text().replace("trust: {ca_file: ca.pem}", f"trust: {{sha256: '{'ab' * 32}'}}")
    )
    assert main(["--output", "json", "trust", str(tmp_path / "site.yaml")]) == 1
    out, err = capsys.readouterr()
    assert [each["what"] for each in json.loads(out)["servers"]] == ["vcenter"]
    assert "supervisors and their clusters are not shown" in err
