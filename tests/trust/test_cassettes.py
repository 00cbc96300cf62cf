"""A conversation recorded while every sort of secret is sent holds none of them."""

from __future__ import annotations

import functools
import json

import pytest
from contract.cassette import Tape
from contract.scrub import Scrub
from kinds.lifecycle import EVERYTHING, QUICK, made
from trust import plants
from trust.driver import Tap
from trust.scan import Scanner

import bfinfra
from bfinfra import sandbox

FIELDS = (
    "site",
    "vcenter",
    "pepper",
    "supervisor_namespace",
    "kubernetes_cluster",
    "registry_credential",
    "bitfusion_token",
    "token_secret",
)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    found = plants.plant(tmp_path / "planted")
    for name, value in found.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    site = json.loads(found.site.read_text())
    found.site.write_text(json.dumps({key: site[key] for key in FIELDS}))
    return found


def test_a_recorded_apply_holds_no_secret(planted, tmp_path):
    running, taken = sandbox.start(planted.world, tmp_path / "sandbox", pace=0), set()
    tape = Tape(tmp_path / "tape.yaml", Scrub({}, tuple(planted.secrets.values())), recording=True)
    try:
        context = bfinfra.RunContext(
            sandbox=running, retry=QUICK, middleware=(functools.partial(Tap, taken), tape.filling)
        )
        outcome = bfinfra.apply(
            bfinfra.load(planted.site, sandbox=running), approve=lambda _: EVERYTHING, context=context
        )
    finally:
        sandbox.stop(tmp_path / "sandbox")
    tape.finish()
    assert made(outcome)
    secrets = {
        **planted.secrets,
        **{f"handed out {number}": value for number, value in enumerate(sorted(taken)) if len(value) >= 16},
    }
    assert len(secrets) > len(planted.secrets)
    recorded = (tmp_path / "tape.yaml").read_text()
    assert recorded.count("\n- request:") > 20
    assert Scanner(secrets).text(recorded) == []
