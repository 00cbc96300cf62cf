"""The account for vCenter and its supervisors: from the site, else from the variables that govc, Terraform
and Ansible use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from bfinfra.model.errors import Denied
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources

USERNAMES = ("BFINFRA_VCENTER_USERNAME", "GOVC_USERNAME", "VSPHERE_USER", "VMWARE_USER")
PASSWORDS = ("BFINFRA_VCENTER_PASSWORD", "GOVC_PASSWORD", "VSPHERE_PASSWORD", "VMWARE_PASSWORD")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account. The password is a reference until it is sent."""

    username: str
    password: Secret


def credentials(
    settings: VCenterSettings, env: Mapping[str, str] | None = None, *, before: tuple[str, ...] = ()
) -> Credentials:
    """From the site, else from the environment (`env`, else that of the password's reference, else this
    process's). Raises Denied.

    `before`: variables of the password that come before the usual ones.
    """
    if env is None:
        env = settings.password.sources.env if settings.password else os.environ
    username = settings.username or next((env[n] for n in USERNAMES if env.get(n)), None)
    named = next((n for n in (*before, *PASSWORDS) if env.get(n)), None)
    if not username:
        raise Denied(
            "no user name for vCenter",
            server=settings.server,
            next=f"write vcenter.username or set {USERNAMES[0]}",
        )
    if settings.password:
        return Credentials(username, settings.password)
    if not named:
        raise Denied(
            "no password for vCenter",
            server=settings.server,
            next=f"write vcenter.password as a reference or set {PASSWORDS[0]}",
        )
    return Credentials(username, Secret("env", named, Sources(env=env)))
