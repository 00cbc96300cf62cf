"""Admission webhooks: which are asked about a write, in what order, and what their answers do."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.errors import Refused, bad_request
from bfinfra.sandbox.kubernetes.objects import Object, copied, name_of
from bfinfra.sandbox.kubernetes.patches import json_patch
from bfinfra.sandbox.kubernetes.registry import Resource
from bfinfra.sandbox.kubernetes.services import Services, Unreachable
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.webhook_answers import Answer, Unusable, denied, failed, read
from bfinfra.sandbox.kubernetes.webhook_rules import exempt, matched, selected

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
HARMLESS = ("None", "NoneOnDryRun")
EXPLAINS_CALLS = 23  # the minor version from which errors begin with "failed to call webhook"
LATER = ("uid", "resourceVersion", "selfLink")
"""Fields that a new object gets after the mutating webhooks have seen it."""


@dataclass(frozen=True)
class Write:
    """One write that webhooks are asked about. `before` is None for a create, `after` for a delete."""

    target: Target
    before: Object | None
    after: Object | None
    options: Options

    @property
    def operation(self) -> str:
        """As rules name it."""
        return "DELETE" if self.after is None else "UPDATE" if self.before is not None else "CREATE"


class Webhooks:
    """Those that a cluster's configurations name."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.services = Services(cluster)

    def mutate(self, write: Write, normal: Callable[[Object], Object]) -> Object | None:
        """The object as the webhooks leave it, `normal` after each change. Raises Refused."""
        called: list[tuple[Object, Resource, Object | None]] = []
        for hook, resource in self._asked(MUTATING, write):
            write = self._mutated(hook, resource, write, normal)
            called.append((hook, resource, write.after))
        for hook, resource, left in called:
            if hook.get("reinvocationPolicy") == "IfNeeded" and left != write.after:
                write = self._mutated(hook, resource, write, normal)
        return write.after

    def validate(self, write: Write) -> None:
        """Raises Refused if one denies the write, or can't be asked and its failurePolicy is Fail."""
        for hook, resource in self._asked(VALIDATING, write):
            self._call(hook, resource, write, mutating=False)

    def _asked(self, plural: str, write: Write) -> Iterator[tuple[Object, Resource]]:
        """By the names of the configurations, then in their order; each with the version of the resource that
        it wants to see.
        """
        configurations = self._cluster.all(GROUP, plural)
        if not configurations or exempt(write.target.resource):
            return
        versions = [
            write.target.resource,
            *(
                each
                for each in self._cluster.registry.all()
                if each.key == write.target.resource.key and each.version != write.target.resource.version
            ),
        ]
        for configuration in configurations:
            for hook in configuration.get("webhooks") or []:
                same = versions if hook.get("matchPolicy", "Equivalent") == "Equivalent" else versions[:1]
                resource = next(
                    (each for each in same if matched(hook, each, write.target, write.operation)), None
                )
                if resource and selected(hook, self._cluster, write.target, write.before, write.after):
                    yield hook, resource

    def _mutated(
        self, hook: Object, resource: Resource, write: Write, normal: Callable[[Object], Object]
    ) -> Write:
        answer = self._call(hook, resource, write, mutating=True)
        if answer is None or not answer.patch or write.after is None:
            return write
        held = {name: value for name, value in write.after["metadata"].items() if name in LATER}
        presented = self._presented(resource, write, write.after, mutating=True) or {}
        try:
            patched = json_patch(presented, answer.patch)
        except Refused as broken:
            raise failed(
                broken.details["causes"][0]["message"] if broken.details else broken.message
            ) from broken
        metadata = {"name": name_of(write.after), **patched.get("metadata", {}), **held}
        after = self._converted({**patched, "metadata": metadata}, write.target.resource)
        return Write(write.target, write.before, normal(after), write.options)

    def _call(self, hook: Object, resource: Resource, write: Write, *, mutating: bool) -> Answer | None:
        """None where it could not be asked and that is to be ignored."""
        if write.options.dry_run and hook.get("sideEffects") not in HARMLESS:
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        version = next(each for each in hook["admissionReviewVersions"] if each in ("v1", "v1beta1"))
        request = self._request(resource, write, mutating=mutating)
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        try:
            answer = read(self._answer(hook, review), version, request["uid"], mutating=mutating)
        except Unusable as why:
            if hook.get("failurePolicy", "Fail") == "Ignore":
                return None
            raise failed(f'failed calling webhook "{hook["name"]}": {why}') from why
        for text in answer.warnings:
            self._cluster.warn(text)
        if not answer.allowed:
            raise denied(hook["name"], answer.status)
        return answer

    def _answer(self, hook: Object, review: Object) -> Any:
        config, seconds = hook["clientConfig"], hook.get("timeoutSeconds", 10)
        service = config.get("service")
        address = _address(service) if service else config["url"]
        head = "failed to call webhook: " if self._cluster.registry.minor >= EXPLAINS_CALLS else ""
        url = f'{head}Post "{address}?timeout={seconds}s"'
        if not service:
            host = address.split("/")[2].partition(":")[0]
            raise Unusable(f"{url}: dial tcp: lookup {host}: no such host")
        try:
            return json.loads(
                json.dumps(self.services.reviewed(service, config.get("caBundle", ""), copied(review)))
            )
        except Unreachable as why:
            raise Unusable(f"{url}: {why}") from why
        except TimeoutError as why:
            raise Unusable(f"{url}: context deadline exceeded") from why
        except LookupError as why:
            raise Unusable(f"{head}{why}") from why

    def _request(self, resource: Resource, write: Write, *, mutating: bool) -> Object:
        target, user = write.target, write.options.user
        thing = write.after or write.before or {}
        name = (
            name_of(self._presented(resource, write, thing, mutating=mutating) or {})
            if write.operation == "CREATE"
            else name_of(thing)
        )
        asked = {"group": target.resource.group, "version": target.resource.version}
        sent = {"group": resource.group, "version": resource.version}
        return {
            "uid": str(uuid.uuid4()),
            "kind": {**sent, "kind": resource.kind},
            "resource": {**sent, "resource": resource.plural},
            "requestKind": {**asked, "kind": resource.kind},
            "requestResource": {**asked, "resource": resource.plural},
            **(
                {"subResource": target.subresource, "requestSubResource": target.subresource}
                if target.subresource
                else {}
            ),
            **({"name": name} if name else {}),
            **(
                {"namespace": target.namespace or target.name}
                if resource.namespaced or resource.plural == "namespaces"
                else {}
            ),
            "operation": write.operation,
            "dryRun": write.options.dry_run,
            "userInfo": _identity(user),
            "object": self._presented(resource, write, write.after, mutating=mutating),
            "oldObject": self._converted(write.before, resource) if write.before else None,
            "options": {
                "kind": f"{write.operation.capitalize()}Options",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": write.options.manager,
            },
        }

    def _presented(
        self, resource: Resource, write: Write, thing: Object | None, *, mutating: bool
    ) -> Object | None:
        """An object as the webhook is shown it: a new one has no name made of generateName and no uid before
        the mutating ones are done.
        """
        if thing is None:
            return None
        shown: Object = copied(self._converted(thing, resource))
        if mutating and write.before is None:
            made = ("name",) if shown["metadata"].get("generateName") else ()
            shown["metadata"] = {
                key: value for key, value in shown["metadata"].items() if key not in (*LATER, *made)
            } | {"creationTimestamp": None}
        return shown

    def _converted(self, thing: Object, resource: Resource) -> Object:
        own = self._cluster.registry.of_kind(thing["apiVersion"], thing["kind"])
        return (
            resource.read(own.write(copied(thing)))
            if own and own.api_version != resource.api_version
            else thing
        )


def _address(service: Object) -> str:
    return (
        f"https://{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}"
        f"{service.get('path') or '/'}"
    )


def _identity(user: Any) -> Object:
    return (
        {"username": user.name, "groups": list(user.all_groups)}
        if user
        else {"username": "system:kube-controller-manager", "groups": ["system:authenticated"]}
    )
