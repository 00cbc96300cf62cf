"""Each thing that the doctor can find of this machine and of vCenter, and that no test of test_doctor.py brings
about: reported with what to do.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from kinds.checking import BAD, GOOD, WARNING, checks_on, diagnosed, messages, one
from kinds.lifecycle import EXAMPLES

from bfinfra.doctor import local, vcenter
from bfinfra.kinds import server_checks


def test_authorities_that_are_none(sandbox, tmp_path):
    (tmp_path / "wrong.pem").write_text("no certificate")
    (tmp_path / "site.yaml").write_text(EXAMPLES["gpu_host"].read_text().replace("ca.pem", "wrong.pem"))
    assert "give a PEM file" in messages(diagnosed(tmp_path / "site.yaml", sandbox), BAD)["local.files"]


def test_a_state_folder_that_may_not_be_written(sandbox, monkeypatch):
    with checks_on(sandbox, "gpu_host") as context:
        monkeypatch.setattr(local.os, "access", lambda *_: False)
        assert "BFINFRA_STATE_HOME" in one(local.state(context))[1]
        assert one(local.state(context))[0] is BAD


def test_names_that_lead_somewhere_and_nowhere(sandbox, monkeypatch):
    def lead(host, port, **_):
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", (each, port)) for each in addresses]

    monkeypatch.setattr(server_checks.socket, "getaddrinfo", lead)
    with checks_on(sandbox, "gpu_host") as context:
        outside = replace(context, transport=SimpleNamespace(routed=False))
        addresses = ["10.0.0.9", "10.0.0.8"]
        assert one(vcenter.CHECKS["servers.names"](outside)) == (
            GOOD,
            "vcenter vc.small.test: is 10.0.0.8, 10.0.0.9:  → ",
        )
        addresses = []
        assert one(vcenter.CHECKS["servers.names"](outside)) == (
            BAD,
            (
                "vcenter vc.small.test: its name has no address: Name or service not known → correct the "
                "name, or the machine's name servers"
            ),
        )


def test_a_certificate_that_is_not_valid_yet(sandbox):
    with checks_on(sandbox, "gpu_host", now=lambda: datetime.now(UTC) - timedelta(days=9000)) as context:
        health, words = one(vcenter.CHECKS["servers.certificates"](context))
    assert health is BAD
    assert "its certificate begins on" in words
    assert "NTP" in words


def test_a_vcenter_that_is_newer_than_what_is_known(sandbox, monkeypatch):
    with checks_on(sandbox, "gpu_host") as context:
        monkeypatch.setattr(context.vcenter, "about", lambda: ("VMware vCenter Server 10.0", "10.0.0.0"))
        health, words = one(vcenter.version(context))
    assert health is WARNING
    assert "upgrade bfinfra" in words


def test_a_place_that_is_not_there(sandbox, tmp_path):
    text = (
        EXAMPLES["bitfusion_server"]
        .read_text()
        .replace("    gpus: 1\n", "    gpus: 1\n    folder: none/such\n")
    )
    (tmp_path / "site.yaml").write_text(text)
    assert (
        "/vm/none/such: there is nothing at this path that the account sees"
        in messages(diagnosed(tmp_path / "site.yaml", sandbox), BAD)["vcenter.rights"]
    )
