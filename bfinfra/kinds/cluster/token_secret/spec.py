"""The desired state of a token in a cluster, and the Secrets that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from bfinfra.kinds.capabilities import token
from bfinfra.kinds.cluster.base.replicated_secret import spec
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Ref

SINGLE = {"bitfusion-secret": ("ca.crt", "client.yaml", "servers.conf")}
THREE = {
    "bitfusion-client-secret-ca.crt": ("ca.crt",),
    "bitfusion-client-secret-client.yml": ("client.yaml",),
    "bitfusion-client-secret-servers.conf": ("servers.conf",),
}
FILES = SINGLE["bitfusion-secret"]
OF_CLIENT = {"single": "bitfusion-secret", "three": "bitfusion-client-secret-client.yml"}
"""For each form, the Secret with client.yaml, the file that differs from token to token."""
FORMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"single": SINGLE, "three": THREE}


class Spec(spec.Spec):
    """The desired state of one token in one cluster."""

    token: Annotated[str, Ref("bitfusion_token")]
    """The token."""
    form: Literal["single", "three"] = "three"
    """three: one Secret per file, as the device plug-in 0.3 and later and Bitfusion 4 expect; single: one
    Secret `bitfusion-secret`.
    """

    def names(self, name: str) -> tuple[str, ...]:
        """The Secrets of the form, which have fixed names."""
        return tuple(FORMS[self.form])

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """Its Secrets, and the token for a device plug-in."""
        yield from super().provides(name, site)
        yield from (token(self.form, each, self.cluster, site) for each in self._spaces(site))
