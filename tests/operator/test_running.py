"""The operator as a command: what it says before it begins, and who it is to its cluster."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path

import pytest

from bfinfra.backends.kubernetes import incluster
from bfinfra.backends.kubernetes.access import Access
from bfinfra.cli.main import main
from bfinfra.model.errors import Refusal
from bfinfra.model.trust import Trust
from bfinfra.operator.watch import connection


def token(**claims: float) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.sig"


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in {
        "token": f"{token(exp=time.time() + 3600)}\n",
        "ca.crt": "-----BEGIN CERTIFICATE-----\n",
        "namespace": "bfinfra-system",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_in_a_pod_it_is_the_pods_account_and_reads_a_new_token_when_one_is_there(account: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    first = incluster.enter(account, env)
    assert (first.url, first.trust.ca_pem, first.spent) == (
        "https://[fd00::1]:6443",
        "-----BEGIN CERTIFICATE-----\n",
        False,
    )
    (account / "token").write_text(token(exp=time.time() - 1))
    assert incluster.enter(account, env).spent
    assert incluster.namespace(account) == "bfinfra-system"


def test_outside_of_a_cluster_and_without_an_account_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="--kubeconfig"):
        incluster.enter(tmp_path, {})
    with pytest.raises(Refusal, match="automountServiceAccountToken"):
        incluster.enter(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert incluster.namespace(tmp_path) == ""


def test_kopf_gets_the_same_account() -> None:
    made = connection(
        Access("https://k.test:6443", Trust(ca_pem="-----BEGIN CERTIFICATE-----\n"), token="abc")
    )
    assert (made.server, made.ca_data, made.token, made.scheme, made.insecure) == (
        "https://k.test:6443",
        "-----BEGIN CERTIFICATE-----\n",
        "abc",
        "Bearer",
        None,
    )
    by_certificate = connection(Access("https://k.test:6443", Trust(), identity=("CERT", "KEY")))
    assert (by_certificate.certificate_data, by_certificate.private_key_data, by_certificate.token) == (
        "CERT",
        "KEY",
        None,
    )


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["--image", "x"], "--lease NAMESPACE/NAME"),
        (["--image", "x", "--metrics", "8080x"], "--metrics ADDRESS:PORT"),
        (
            ["--image", "x", "--lease", "ns/op", "--kubeconfig", "no-such-file", "--metrics", "127.0.0.1:0"],
            "no-such-file",
        ),
    ],
)
def test_what_it_can_not_begin_with_is_a_sentence(
    words: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["operator", "run", *words]) == 1
    captured = capsys.readouterr()
    assert output in captured.err
    assert "Traceback" not in captured.err


def test_without_its_libraries_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kopf", None)
    for name in ("bfinfra.operator.running", "bfinfra.operator.watch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert main(["operator", "run", "--image", "x"]) == 1
    assert 'pip install "bfinfra[operator]"' in capsys.readouterr().err
