"""The state of one in-memory Kubernetes cluster: its objects, resources, users and admission checks."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.kubernetes.identity import MASTERS, Tokens, User
from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.rbac import Authorizer
from bfinfra.sandbox.kubernetes.registry import Registry, Resource
from bfinfra.sandbox.kubernetes.store import Store
from bfinfra.sandbox.kubernetes.target import Options, Target

Admission = Callable[[Target, "Object | None", Object, Options], Object]
Validation = Callable[[Target, "Object | None", Object, Options], None]
Endpoint = Callable[[Target, Request, User], Response]


class ClusterState:
    """A cluster as its parts see it. `handler`: the API, as the listeners open it."""

    handler: Handler

    def __init__(self, name: str, version: str, clock: Clock, *, tokens: Tokens | None = None) -> None:
        self.name, self.version, self.clock = name, version, clock
        self.store = Store()
        self.registry = Registry(version)
        self.tokens = tokens or Tokens(clock, name)
        self.authorizer = Authorizer(self.store)
        self.admissions: list[Admission] = []
        self.validations: list[Validation] = []
        self.delete_admissions: list[Callable[[Target, Object, Options], None]] = []
        self.lingering: dict[tuple[str, str], Callable[[Object], bool]] = {}
        self.endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self.remembered: dict[str, dict[str, str]] = {}
        """What machines know and no object says, by what it is."""
        self.admin_token = ""
        self._warned = threading.local()
        self.keep_admin_token(secrets.token_hex(16))

    def keep_admin_token(self, token: str) -> None:
        """The token of the cluster's own administrator (the one in its kubeconfig Secret)."""
        self.admin_token = token
        self.tokens.keep(token, User("kubernetes-admin", (MASTERS,)))

    def authenticate(self, token: str) -> User | None:
        """The user of a bearer token."""
        return self.tokens.find(token)

    def account_token(self, namespace: str, name: str, seconds: float) -> str:
        """A token for a service account."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return self.tokens.issue(User(f"system:serviceaccount:{namespace}:{name}", groups), seconds)

    def warn(self, text: str) -> None:
        """Let the request that this thread serves carry a Warning header."""
        self._warned.texts = [*getattr(self._warned, "texts", []), text]

    def warnings(self) -> list[str]:
        """The warnings of this thread's request; reading them removes them."""
        texts, self._warned.texts = getattr(self._warned, "texts", []), []
        return texts

    def lingers(self, resource: Resource, thing: Object) -> bool:
        """True for an object that must end before it can be removed (a running pod)."""
        test = self.lingering.get(resource.key)
        return bool(test and test(thing))

    def resource(self, group: str, plural: str) -> Resource:
        """A resource in its stored version."""
        return self.registry.stored(group, plural)

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Object | None:
        """One stored object; not to be changed."""
        return self.store.get((group, plural), namespace, name)

    def all(self, group: str, plural: str, namespace: str = "") -> list[Object]:
        """Stored objects; not to be changed."""
        return self.store.all((group, plural), namespace)

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        return {
            "version": self.version,
            "admin_token": self.admin_token,
            "remembered": {who: {**known} for who, known in self.remembered.items()},
            "store": self.store.save(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        self.version = str(data["version"])
        self.keep_admin_token(str(data["admin_token"]))
        for who, known in data.get("remembered", {}).items():
            self.remembered.setdefault(who, {}).update(known)
        self.store.restore(data["store"])
