"""The vCenter of a site: from the site, else from the variables that govc, Terraform and Ansible use."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from bfinfra.model.errors import Place, Problem
from bfinfra.model.site import VCenterSettings

SERVERS = ("BFINFRA_VCENTER_SERVER", "GOVC_URL", "VSPHERE_SERVER", "VMWARE_HOST")


def with_server(
    settings: VCenterSettings | None, env: Mapping[str, str], at: Place | str, problems: list[Problem]
) -> VCenterSettings | None:
    """The settings with a server. A problem is added where neither the site nor the environment names one."""
    if settings is None or settings.server:
        return settings
    named = next((name for name in SERVERS if env.get(name)), "")
    server = _host(env[named]) if named else ""
    if not server:
        why = f"{named} contains no host name" if named else ""
        problems.append(
            Problem("vcenter.server is missing", at, why, f"write it, or set {SERVERS[0]} or {SERVERS[1]}")
        )
    return settings.model_copy(update={"server": server})


def _host(value: str) -> str:
    """`host` or `host:port` of an address in govc's form, with or without scheme, user and path."""
    try:
        return urlsplit(value if "://" in value else f"https://{value}").netloc.rpartition("@")[2]
    except ValueError:
        return ""
