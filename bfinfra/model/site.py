"""A loaded site: the desired state, and the place of each field in the files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr

from bfinfra.model.drift import DriftSettings
from bfinfra.model.errors import Place, Warned
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.trust import Trust
from bfinfra.model.variant import PLAIN, Variant


def _address(server: str) -> str:
    if re.search(r"[/@\s]", server):
        raise ValueError("write host or host:port, without a scheme, a user or a path")
    return server


class VCenterSettings(BaseModel):
    """The vCenter of a site."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    server: Annotated[str, AfterValidator(_address)] = ""
    """Host name, or host:port; by default that of BFINFRA_VCENTER_SERVER, GOVC_URL, VSPHERE_SERVER or
    VMWARE_HOST.
    """
    username: str | None = None
    """By default BFINFRA_VCENTER_USERNAME, GOVC_USERNAME, VSPHERE_USER or VMWARE_USER."""
    password: Secret | None = None
    """Reference to the password; by default BFINFRA_VCENTER_PASSWORD, GOVC_PASSWORD, VSPHERE_PASSWORD or
    VMWARE_PASSWORD.
    """
    trust: Trust = Field(default_factory=Trust)
    """Which certificate the server must show; by default one that the system's store trusts."""
    datacenter: str | None = None
    """Name or path of the datacenter; required if there are several."""
    supervisor_trust: Trust | None = None
    """Trust for the supervisors' API; by default vCenter's own certificate authorities, read from vCenter."""
    _env: Mapping[str, str] | None = PrivateAttr(None)

    def model_post_init(self, context: object) -> None:
        """Keep the variables that the site was read with: those of a Site are not this process's."""
        if isinstance(context, Mapping) and "sources" in context:
            self._env = context["sources"].env

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that replace a user name or a password that is not written."""
        return os.environ if self._env is None else self._env


@dataclass(frozen=True)
class Site:
    """`resources` in the order of the files; `places` by (key, dotted field), where "" is the name itself."""

    name: str
    vcenter: VCenterSettings | None
    resources: Mapping[Key, Any]
    places: Mapping[tuple[Key | None, str], Place] = field(default_factory=dict, repr=False)
    files: Mapping[Path, str] = field(default_factory=dict)
    """Each file of it, and the SHA-256 of its content."""
    pepper: Secret | None = None
    """Mixed into the digests of write-only secrets."""
    warnings: tuple[Warned, ...] = ()
    stand_ins: Path | None = None
    """The sandbox's folder with replacements for files, if it was loaded with one."""
    drift: DriftSettings = field(default_factory=DriftSettings)
    """How drift is judged."""
    paths: tuple[Path, ...] = ()
    """The files and folders that it was read from, as the user named them."""
    variant: Variant = PLAIN
    """Its overlays and values."""
    variant_files: Mapping[Path, str] = field(default_factory=dict)
    """The same as `files`, for overlays and files of values."""

    def place(self, key: Key | None, field: str = "") -> Place | None:
        """The place of a field; if it isn't written, of the nearest field that contains it."""
        while True:
            if (found := self.places.get((key, field))) or not field:
                return found
            field = field.rpartition(".")[0]
