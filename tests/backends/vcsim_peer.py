"""vcsim as a peer of the tests: where it is found, how it is reached."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

ENV = {"GOVC_USERNAME": "user", "GOVC_PASSWORD": "pass"}


@dataclass(frozen=True)
class Vcsim:
    server: str
    pem: str

    @classmethod
    def at(cls, line: str) -> Vcsim:
        server = re.search(r"https://(?:[^@]*@)?([\d.]+:\d+)", line)[1]
        host, port = server.split(":")
        return cls(server, ssl.get_server_certificate((host, int(port))))

    def settings(self, **more) -> VCenterSettings:
        return VCenterSettings(server=self.server, trust=Trust(ca_pem=self.pem), **more)

    def vcenter(self, **transport) -> VCenter:
        return VCenter(self.settings(), Transport(**transport), ENV)
