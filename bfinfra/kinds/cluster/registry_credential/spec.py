"""The desired state of an account for a container registry."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from bfinfra.kinds.cluster.base.replicated_secret import spec as of_secrets
from bfinfra.kinds.cluster_locator import DnsLabel
from bfinfra.model.names import DNS_NAME, DNS_NAME_RULE
from bfinfra.model.secret import Secret


class Spec(of_secrets.Spec):
    """The desired state of one account in one cluster."""

    name_pattern = DNS_NAME
    name_rule = DNS_NAME_RULE
    awaits: ClassVar = {"password": "get it from whoever runs the registry"}
    unnoted = frozenset(awaits)

    server: Annotated[str, StringConstraints(pattern=r"^(https://)?[A-Za-z0-9.-]+(:\d+)?(/[\w./-]*)?$")]
    """The registry, as images name it: `172.24.206.3` or `registry.example.com:5000`."""
    username: str
    """Name of the account."""
    password: Secret
    """Reference to its password or token."""
    secret: DnsLabel | None = None
    """Name of the Secret, if it differs from the resource's name."""

    def names(self, name: str) -> tuple[str, ...]:
        """One Secret."""
        return (self.secret or name,)
