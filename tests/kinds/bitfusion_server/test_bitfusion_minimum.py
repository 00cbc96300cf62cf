"""A device plug-in whose token leads to servers that are too old for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bfinfra.backends import ova
from bfinfra.kinds.vcenter.bitfusion_server import checks
from bfinfra.kinds.vcenter.bitfusion_server.state import BitfusionServerFacts
from bfinfra.model.refs import Key
from bfinfra.sandbox.factories.ova import make_ova


@pytest.mark.parametrize(
    ("version", "old"), [("2.0.0-11", True), ("2.5.0-10", False), ("3.0.0-11", False), ("4.5.0-4", False)]
)
def test_a_server_before_2_5_is_recognised_by_the_version_of_its_appliance(tmp_path, version, old):
    make_ova(tmp_path / "server.ova", version=version)
    site = {
        Key("bitfusion_device_plugin", "p"): SimpleNamespace(token_secret="t"),
        Key("token_secret", "t"): SimpleNamespace(token="tok"),
        Key("bitfusion_token", "tok"): SimpleNamespace(servers=("bf-1",)),
        Key("bitfusion_server", "bf-1"): SimpleNamespace(ova=SimpleNamespace(text="server.ova")),
    }
    read = {"server.ova": ova.read(tmp_path / "server.ova")}
    found = [*checks.conflicts(site, {}, BitfusionServerFacts(ovas=read))]
    assert [each.what for each in found] == (
        [f"its token leads to a server of Bitfusion {version}"] if old else []
    )
    assert [*checks.conflicts(site, {}, BitfusionServerFacts())] == []
