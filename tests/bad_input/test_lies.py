"""Servers that lie during a plan or drift: an error in words, whatever they say; never a traceback, a hang,
an escape on the screen, or a write.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bad_input import at_a_desk, fuzz, lies
from kinds.lifecycle import EXAMPLES

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def talk(sandbox_process: Running, tmp_path_factory: pytest.TempPathFactory) -> lies.Talk:
    """What vCenter (SOAP and REST), the supervisor's login and its Kubernetes answered for an existing cluster;
    recorded once, as nobody changes it.
    """
    folder = tmp_path_factory.mktemp("lies")
    sandbox_process.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "state"))
        return lies.recorded(EXAMPLES["tanzu_cluster"], sandbox_process, folder / "site")


def test_a_share_of_what_script_torture_tries(talk: lies.Talk):
    found = lies.lied_to(talk, 20, 20261121)
    assert found.broken == []
    assert found.tally["refused"] > 5


@pytest.mark.parametrize(
    ("path", "change", "says"),
    [
        ("/api/session", lambda _: b'"\xc2\x9b31m"', "the login's answer holds no session"),
        ("/api/session", lambda _: b"[" * 5_000, "the login's answer holds no session"),
        ("/sdk", lambda _: b"", "makes no sense|can't be read|doesn't answer as a vCenter does"),
        (
            "/sdk",
            lambda body: body.replace(b"?>", b'?><!DOCTYPE a [<!ENTITY b "c">]>', 1),
            "declares a document type",
        ),
        (
            "/sdk",
            lambda body: body.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
            "is no UTF-8|can't be read",
        ),
        ("/wcp/login", lambda _: b"[" * 5_000, "not a JSON object"),
        (
            "/tanzukubernetesclusters",
            lambda body: json.dumps({**json.loads(body), "items": [{"spec": 5}]}).encode(),
            "can't read the server's answer|read the answer",
        ),
        ("/tanzukubernetesclusters", lambda _: b"[" * 100_000, "read the answer"),
        (
            "/tanzukubernetesclusters",
            lambda _: b"[" + b"{}," * (1 << 20) + b"{}]",
            "is too large; more than 500,000 values",
        ),
    ],
)
def test_what_was_found(talk: lies.Talk, path: str, change, says: str):
    changed = {
        (asked, number): replace(answer, body=change(answer.body))
        for asked, answers in talk.answers.items()
        for number, answer in enumerate(answers)
        if path in asked[1]
    }
    assert changed
    with lies.answering(talk, changed):
        code, out, err = at_a_desk.output("plan", str(talk.site))
        assert code == 1
        assert any(each in out + err for each in says.split("|")), out + err
        assert at_a_desk.answers("plan", str(talk.site), "--output", "json") == 1


def test_a_planted_crash_in_a_backend_is_found(talk: lies.Talk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fuzz, "SHRINK", False)
    monkeypatch.setattr("bfinfra.engine.observe.provider_errors", lambda _: lies.contextlib.nullcontext())
    monkeypatch.setattr(
        "bfinfra.backends.vcenter.faults.malformed", lambda *_: RuntimeError("planted")
    )  # what most of an answer's changes come to
    assert "this should not happen" in "".join(lies.lied_to(talk, 60, 1).broken)
