from __future__ import annotations

import pytest

from bfinfra.backends.credentials import credentials
from bfinfra.model.errors import Denied
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources


def test_the_site_goes_before_the_environment():
    password = Secret("env", "MINE", Sources(env={"MINE": "one", "GOVC_PASSWORD": "two"}))
    found = credentials(VCenterSettings(server="vc", username="me", password=password))
    assert (found.username, found.password.reveal()) == ("me", "one")


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("BFINFRA_VCENTER_USERNAME", "BFINFRA_VCENTER_PASSWORD"),
        ("GOVC_USERNAME", "GOVC_PASSWORD"),
        ("VSPHERE_USER", "VSPHERE_PASSWORD"),
        ("VMWARE_USER", "VMWARE_PASSWORD"),
    ],
)
def test_the_environment_of_other_tools_is_understood(user, password):
    found = credentials(VCenterSettings(server="vc"), {user: "me", password: "it"})
    assert (found.username, found.password.reveal()) == ("me", "it")
    assert "it'" not in repr(found)


def test_nothing_at_all_says_what_to_set():
    with pytest.raises(Denied, match="BFINFRA_VCENTER_USERNAME"):
        credentials(VCenterSettings(server="vc"), {})
    with pytest.raises(Denied, match="BFINFRA_VCENTER_PASSWORD"):
        credentials(VCenterSettings(server="vc", username="me"), {})
