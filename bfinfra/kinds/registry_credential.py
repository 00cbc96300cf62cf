"""The account for a container registry, as an image pull Secret in a cluster's namespaces. (Pod specification, imagePullSecrets.)"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import StringConstraints

from bfinfra.kinds import _copies
from bfinfra.kinds._copies import Content, State, Write
from bfinfra.kinds._homes import DnsLabel
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.kind import Around, Need
from bfinfra.model.names import DNS_NAME, DNS_NAME_RULE
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret

KEY = ".dockerconfigjson"


class Spec(_copies.Spec):
    """What a user writes for one account in one cluster."""

    name_pattern = DNS_NAME
    name_rule = DNS_NAME_RULE

    server: Annotated[str, StringConstraints(pattern=r"^(https://)?[A-Za-z0-9.-]+(:\d+)?(/[\w./-]*)?$")]
    """The registry, as images name it: `172.24.206.3` or `registry.example.com:5000`."""
    username: str
    """The account."""
    password: Secret
    """Reference to its password or token."""
    secret: DnsLabel | None = None
    """Name of the Secret, where it differs from the name here."""

    def names(self, name: str) -> tuple[str, ...]:
        """One Secret."""
        return (self.secret or name,)


class RegistryCredential(_copies.Copies[Spec, State]):
    """The account for a container registry, as an image pull Secret."""

    document = Document.SINGAPORE_POC
    address = "registry_credential"
    secret_type = "kubernetes.io/dockerconfigjson"  # noqa: S105 - a type, no secret

    def expected(self, name: str, spec: Spec, needs: Mapping[Key, Need]) -> Content | None:
        """What kubectl create secret docker-registry would write."""
        return _content(spec.names(name), {"server": spec.server, "username": spec.username, "password": spec.password})

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """A step a namespace. The source is the reference to the password."""
        source = {"server": spec.server, "username": spec.username, "password": spec.password} if spec else {}
        return _copies.steps(name, spec, state, around, what=f"credential {name}", source=source)

    def content(self, step: Write) -> Content:
        """The account, its password revealed now."""
        return _content(step.names, step.source)


def _content(names: Sequence[str], source: Mapping[str, Any]) -> Content:
    username, password = source["username"], source["password"].reveal()
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    config = {"auths": {source["server"]: {"username": username, "password": password, "auth": auth}}}
    return {name: {KEY: json.dumps(config, separators=(",", ":")).encode()} for name in names}
