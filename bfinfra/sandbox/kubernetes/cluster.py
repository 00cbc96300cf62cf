"""One in-memory Kubernetes cluster behind one door."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.door import Request, Response
from bfinfra.sandbox.kubernetes import api
from bfinfra.sandbox.kubernetes.deletion import delete
from bfinfra.sandbox.kubernetes.dump import dump
from bfinfra.sandbox.kubernetes.grants import check_grants
from bfinfra.sandbox.kubernetes.identity import MASTERS, Tokens, User
from bfinfra.sandbox.kubernetes.objects import Object, copied, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.pod_security import PodSecurity
from bfinfra.sandbox.kubernetes.rbac import Authorizer
from bfinfra.sandbox.kubernetes.registry import Registry, Resource
from bfinfra.sandbox.kubernetes.store import Store
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.webhooks import Webhooks, Write
from bfinfra.sandbox.kubernetes.writes import Writer

Admission = Callable[[Target, "Object | None", Object, Options], Object]
Validation = Callable[[Target, "Object | None", Object, Options], None]
Endpoint = Callable[[Target, Request, User], Response]
CONTROLLER = "kube-controller-manager"


class Cluster:
    """An API server with its controllers' hooks. `door` answers requests; the methods below are for what
    lives inside the cluster.
    """

    def __init__(self, name: str, version: str, clock: Clock, *, tokens: Tokens | None = None) -> None:
        self.name, self.version, self.clock = name, version, clock
        self.store = Store()
        self.registry = Registry(version)
        self.tokens = tokens or Tokens(clock, name)
        self.authorizer = Authorizer(self.store)
        self.admissions: list[Admission] = []
        self.validations: list[Validation] = []
        PodSecurity(self)
        self.webhooks = Webhooks(self)
        self.delete_admissions: list[Callable[[Target, Object, Options], None]] = []
        self.lingering: dict[tuple[str, str], Callable[[Object], bool]] = {}
        self.endpoints: dict[tuple[str, str, str], Endpoint] = {}
        self.admin_token = ""
        self._warned = threading.local()
        self.keep_admin_token(secrets.token_hex(16))

    def door(self, request: Request) -> Response:
        """The API, as the listeners open it."""
        return api.serve(self, request)

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

    def writer(self) -> Writer:
        """A writer, good for one request."""
        return Writer(self)

    def warn(self, text: str) -> None:
        """Let the request that this thread serves carry a Warning header."""
        self._warned.texts = [*getattr(self._warned, "texts", []), text]

    def warnings(self) -> list[str]:
        """The warnings of this thread's request; they are told once."""
        texts, self._warned.texts = getattr(self._warned, "texts", []), []
        return texts

    def admit(self, write: Write, normal: Callable[[Object], Object]) -> Object:
        """The object as the admission plug-ins, then the webhooks, leave it; `normal` fills in what a change
        left out. Refused where one denies it.
        """
        target, before, after, options = write.target, write.before, write.after or {}, write.options
        if options.user is not None:
            check_grants(self.authorizer, options.user, target, before, after)
        for admission in self.admissions:
            after = admission(target, before, after, options)
        return self.webhooks.mutate(Write(target, before, after, options), normal) or after

    def check(self, write: Write) -> None:
        """Refused where something denies the object as it would be stored: webhooks, then the server's own,
        quotas last.
        """
        self.webhooks.validate(write)
        for validation in self.validations:
            validation(write.target, write.before, write.after or {}, write.options)

    def admit_delete(self, target: Target, stored: Object, options: Options) -> None:
        """Refused where an admission plug-in or a webhook denies the deletion."""
        self.webhooks.mutate(Write(target, stored, None, options), lambda thing: thing)
        for admission in self.delete_admissions:
            admission(target, stored, options)
        self.webhooks.validate(Write(target, stored, None, options))

    def lingers(self, resource: Resource, thing: Object) -> bool:
        """True for an object that somebody must end before it can go (a running pod)."""
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

    def create(self, thing: Object, manager: str = CONTROLLER) -> Object:
        """Create an object from inside the cluster."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource is None:
            raise KeyError(f"{self.name}: no resource for {thing['apiVersion']} {thing['kind']}")
        target = Target(resource, "create", namespace_of(thing), "")
        made = self.writer().create(target, copied(thing), Options(manager, validation="Ignore"))
        return (
            self.set_status(made, thing["status"], manager)
            if "status" in thing and "status" in resource.subresources
            else made
        )

    def ensure(self, thing: Object, manager: str = CONTROLLER) -> Object:
        """The object, created where it isn't there."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        found = resource and self.store.get(resource.key, namespace_of(thing), name_of(thing))
        return found or self.create(thing, manager)

    def change(
        self, thing: Object, how: Callable[[Object], None], manager: str = CONTROLLER, subresource: str = ""
    ) -> Object | None:
        """Change the present state of an object in place; None where it is gone."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource is None or self.store.get(resource.key, namespace_of(thing), name_of(thing)) is None:
            return None

        def changed(live: Object) -> Object:
            fresh: Object = copied(live)
            how(fresh)
            return fresh

        target = Target(resource, "patch", namespace_of(thing), name_of(thing), subresource)
        return self.writer().patch(target, changed, Options(manager, validation="Ignore"))

    def set_status(self, thing: Object, status: Mapping[str, Any], manager: str = CONTROLLER) -> Object:
        """Replace an object's status; the object as it is now."""
        return (
            self.change(thing, lambda live: live.__setitem__("status", dict(status)), manager, "status")
            or thing
        )

    def remove(self, thing: Object, policy: str = "Background") -> None:
        """Delete an object from inside the cluster; nothing happens where it is gone."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource and self.store.get(resource.key, namespace_of(thing), name_of(thing)):
            target = Target(resource, "delete", namespace_of(thing), name_of(thing))
            delete(self, target, {"propagationPolicy": policy, "gracePeriodSeconds": 0}, Options(CONTROLLER))

    def event(self, reason: str, message: str, about: Object | None = None, kind: str = "Warning") -> None:
        """Record an Event about an object (or about the cluster), once for the same words."""
        namespace = namespace_of(about) if about else "default"
        home = self.get("", "namespaces", namespace or "default")
        if home is None or home["metadata"].get("deletionTimestamp"):
            return
        name = (
            f"{name_of(about) if about else self.name}"
            f".{hashlib.sha256(f'{reason}{message}'.encode()).hexdigest()[:16]}"
        )
        reference: Object = {"kind": "Cluster", "name": self.name}
        if about:
            reference = {
                "kind": about["kind"],
                "apiVersion": about["apiVersion"],
                "name": name_of(about),
                "namespace": namespace,
                "uid": uid_of(about),
            }
        when = stamp(self.clock.now())
        self.ensure(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace or "default"},
                "involvedObject": reference,
                "reason": reason,
                "message": message,
                "type": kind,
                "count": 1,
                "firstTimestamp": when,
                "lastTimestamp": when,
                "source": {"component": CONTROLLER},
            }
        )

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        return {"version": self.version, "admin_token": self.admin_token, "store": self.store.save()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        self.version = str(data["version"])
        self.keep_admin_token(str(data["admin_token"]))
        self.store.restore(data["store"])

    def dump(self) -> dict[str, Any]:
        """What the cluster holds without generated ids, versions and times: two equal clusters dump equal."""
        return dump(self.store)

    def close(self) -> None:
        """End every watch."""
        self.store.close()
