"""The kind registry_credential: writes the account to Secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.replicated_secret import decide
from bfinfra.kinds.cluster.base.replicated_secret.decide import Write
from bfinfra.kinds.cluster.base.replicated_secret.kind import ReplicatedSecret
from bfinfra.kinds.cluster.base.replicated_secret.state import Content, State, values_of
from bfinfra.kinds.cluster.registry_credential.spec import Spec
from bfinfra.model.awaited import away, held, until
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.kind import Observation
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

KEY = ".dockerconfigjson"


class RegistryCredential(ReplicatedSecret[Spec, State]):
    """The account for a container registry, as an image pull Secret."""

    document = Document.SINGAPORE_POC
    undescribed = "its content is secret, and bfinfra doesn't read secrets out"
    name = "registry_credential"
    secret_type = "kubernetes.io/dockerconfigjson"  # noqa: S105 - a type, no secret

    def expected(self, name: str, spec: Spec, needs: Mapping[Key, ResolvedRef]) -> Content | None:
        """Return the content that `kubectl create secret docker-registry` would write; None as long as the
        password's file doesn't exist.
        """
        if away(spec, {"password": spec.password}):
            return None
        return _content(
            spec.names(name), {"server": spec.server, "username": spec.username, "password": spec.password}
        )

    def unchanged(self, names: Sequence[str], objects: Sequence[Object]) -> bool:
        """Return whether they have the server and account that were last written. The password is not
        compared, as no digest of it is noted.
        """
        held = {obj["metadata"]["name"]: obj for obj in objects}
        return all(name in held and _as_applied(held[name]) for name in names)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """See the base class. The facts: by name, the password's file that doesn't exist yet."""
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        gone = {
            name: each
            for name, spec in wanted.items()
            if spec and (each := away(spec, {"password": spec.password}))
        }
        return replace(observation, facts=gone)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """One step per namespace. The source is the reference to the password."""
        source = {"server": spec.server, "username": spec.username, "password": spec.password} if spec else {}
        closed = (context.facts or {}).get(name) if spec else None
        later = until(spec.password.file) if spec and spec.password.file and closed else None
        found = decide.steps(
            name, spec, state, context, what=f"credential {name}", source=source, later=later
        )
        if closed and any(isinstance(step, Write) and not step.uids for step in found):
            field, problem = closed
            raise held(problem, field, found)
        return found

    def content(self, step: Write) -> Content:
        """The account with its password, revealed now."""
        return _content(step.names, step.source)


def _as_applied(obj: Object) -> bool:
    """Return whether a Secret has the server and account in its mark."""
    mark, text = mark_of(obj), values_of(obj).get(KEY, b"")
    applied = (mark.applied if mark else None) or {}
    try:
        (entry,) = [json.loads(text)["auths"][applied["server"]]]
        whole = base64.b64encode(f"{applied['username']}:{entry['password']}".encode()).decode()
    except (ValueError, KeyError, TypeError):
        return False
    return bool(entry["password"]) and entry == {
        "username": applied["username"],
        "password": entry["password"],
        "auth": whole,
    }


def _content(names: Sequence[str], source: Mapping[str, Any]) -> Content:
    username, password = source["username"], source["password"].reveal()
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    config = {"auths": {source["server"]: {"username": username, "password": password, "auth": auth}}}
    return {name: {KEY: json.dumps(config, separators=(",", ":")).encode()} for name in names}
