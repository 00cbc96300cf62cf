"""Create, update and patch: one path from what was sent to what is stored."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes import managed, ssa
from bfinfra.sandbox.kubernetes.checks import check_name, validate
from bfinfra.sandbox.kubernetes.defaults import with_defaults
from bfinfra.sandbox.kubernetes.errors import (
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from bfinfra.sandbox.kubernetes.fields import filled, kept, problems
from bfinfra.sandbox.kubernetes.managed import Manager
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, random_suffix, stamp
from bfinfra.sandbox.kubernetes.registry import Resource
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.webhooks import Write

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

NOTES_ALL = 18  # the minor version from which writers are recorded on objects that were never applied, too
SERVER_SET = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
WITHOUT_GENERATION = {
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "ResourceQuota",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "LimitRange",
    "Lease",
}


class Writer:
    """Writes into one cluster. Answers are stored objects in the version of the target; warnings gather in
    `warnings`.
    """

    def __init__(self, cluster: AdmittingCluster) -> None:
        self.cluster, self.store = cluster, cluster.store
        self.warnings: list[str] = []

    def create(self, target: Target, body: object, options: Options) -> Object:
        """A new object."""
        resource = target.resource
        sent = self._addressed(target, self._decoded(resource, body, options))
        metadata = sent["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            sent = {**sent, "metadata": {**metadata, "name": metadata["generateName"] + random_suffix()}}
        with self.store.lock:
            if there := self.store.get(resource.key, target.namespace, name_of(sent)):
                going = "deletionTimestamp" in there["metadata"]
                raise already_exists(resource.plural, resource.group, name_of(sent), going=going)
            return self._begin(
                target, sent, options, lambda after: self._update_managed(target, None, after, options)
            )

    def update(self, target: Target, body: Any, options: Options) -> Object:
        """Replace an object, or its status."""
        sent = self._addressed(target, self._decoded(target.resource, body, options))
        with self.store.lock:
            return self._change(target, self.found(target), sent, options)

    def patch(self, target: Target, how: Callable[[Object], Any], options: Options) -> Object:
        """Change an object by a function of its present state."""
        with self.store.lock:
            live = self.found(target)
            sent = self._addressed(
                target, self._decoded(target.resource, how(target.resource.read(live)), options)
            )
            return self._change(target, live, sent, options)

    def apply(self, target: Target, sent: object, options: Options) -> tuple[Object, bool]:
        """Server-side apply: the object, and whether it is new."""
        resource, when = target.resource, stamp(self.cluster.clock.now())
        sent = self._for_apply(target, sent)
        me = Manager(options.manager, "Apply", resource.api_version, target.subresource)
        with self.store.lock:
            stored = self.store.get(resource.key, target.namespace, target.name)
            if stored is None and target.subresource:
                raise not_found(resource.plural, resource.group, target.name)
            live = (
                resource.read(stored)
                if stored
                else {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
            )
            _same_uid(resource, live, sent)
            before = managed.bare(live)
            merged, paths = ssa.apply(resource.type, before, sent)
            owners = managed.read(live) or (self._unowned(resource, before, when) if stored else {})
            merged = ssa.without_disowned(
                resource.type, merged, owners.get(me, (frozenset(), ""))[0], paths, owners, me
            )
            moved = managed.moved(resource.type, before, merged, custom=resource.custom)
            paths = (
                frozenset(path for path in paths if path[0] != "f:status") if self._splits(target) else paths
            )
            owners = ssa.new_owners(owners, me, paths, moved, when, force=options.force)
            if stored is None:
                return self._begin(
                    target, merged, options, lambda after: managed.written(after, owners)
                ), True
            return self._end(
                target, stored, live, merged, options, lambda after: managed.written(after, owners)
            ), False

    def found(self, target: Target) -> Object:
        """The stored object. Raises Refused (404)."""
        stored = self.store.get(target.resource.key, target.namespace, target.name)
        if stored is None:
            raise not_found(target.resource.plural, target.resource.group, target.name)
        return stored

    def _begin(
        self, target: Target, sent: Object, options: Options, own: Callable[[Object], Object]
    ) -> Object:
        resource = target.resource
        self._home(target, name_of(sent))
        if not name_of(sent):
            cause = Cause(
                "FieldValueRequired", "Required value: name or generateName is required", "metadata.name"
            )
            raise invalid(resource.kind, resource.group, "", [cause])
        check_name(resource, name_of(sent))
        metadata = {key: value for key, value in sent["metadata"].items() if key not in SERVER_SET}
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(self.cluster.clock.now())}
        if self._generates(resource):
            metadata["generation"] = 1
        after = {key: value for key, value in sent.items() if key != "status" or not self._splits(target)}
        after = own(self._normal(resource, {**after, "metadata": metadata}))
        return self._stored(resource, self._admitted(target, None, after, options), options)

    def _change(self, target: Target, stored: Object, sent: Object, options: Options) -> Object:
        live = target.resource.read(stored)
        wanted = sent["metadata"].get("resourceVersion")
        if wanted and wanted != live["metadata"]["resourceVersion"]:
            raise conflict(target.resource.plural, target.resource.group, target.name)
        _same_uid(target.resource, live, sent)
        return self._end(
            target,
            stored,
            live,
            sent,
            options,
            lambda after: self._update_managed(target, live, after, options),
        )

    def _end(  # noqa: PLR0913 - one decision's whole input
        self,
        target: Target,
        stored: Object,
        live: Object,
        sent: Object,
        options: Options,
        own: Callable[[Object], Object],
    ) -> Object:
        resource = target.resource
        after = own(self._normal(resource, self._split(target, live, sent)))
        after = self._admitted(target, live, after, options)
        if self._generates(resource) and _body(after) != _body(live):
            after["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        after["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        if after == live:
            return live
        if self._ended(resource, after) and not options.dry_run:
            self.store.put(resource.key, resource.write(after))
            self.store.remove(resource.key, namespace_of(after), name_of(after))
            return after
        return self._stored(resource, after, options)

    def _ended(self, resource: Resource, thing: Object) -> bool:
        held = (
            thing["metadata"].get("finalizers")
            or dig(thing, "spec", "finalizers")
            or self.cluster.lingers(resource, thing)
        )
        return bool(thing["metadata"].get("deletionTimestamp")) and not held

    def _split(self, target: Target, live: Object, sent: Object) -> Object:
        metadata = {
            key: value for key, value in sent["metadata"].items() if key not in (*SERVER_SET, "managedFields")
        }
        metadata |= {key: live["metadata"][key] for key in SERVER_SET if key in live["metadata"]}
        owners = sent["metadata"].get(
            "managedFields", live["metadata"].get("managedFields")
        )  # a writer may hand over what it owns
        metadata |= {"managedFields": owners} if owners else {}
        if target.subresource == "status":
            return {
                **{key: value for key, value in live.items() if key != "status"},
                **({"status": sent["status"]} if "status" in sent else {}),
            }
        if not self._splits(target):
            return {**sent, "metadata": metadata}
        rest = {key: value for key, value in sent.items() if key != "status"}
        return {**rest, "metadata": metadata, **({"status": live["status"]} if "status" in live else {})}

    def _splits(self, target: Target) -> bool:
        return "status" in target.resource.subresources and target.subresource != "status"

    def _generates(self, resource: Resource) -> bool:
        return resource.custom or (resource.type.declared("spec") and resource.kind not in WITHOUT_GENERATION)

    def _normal(self, resource: Resource, thing: Object) -> Object:
        done = filled(resource.type, kept(resource.type, thing, custom=resource.custom))
        done = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            **{key: done[key] for key in done if key not in ("apiVersion", "kind")},
        }
        return done if resource.custom else with_defaults(done, self.cluster.registry.minor)

    def _admitted(self, target: Target, before: Object | None, after: Object, options: Options) -> Object:
        after = self.cluster.admit(
            Write(target, before, after, options), lambda thing: self._normal(target.resource, thing)
        )
        validate(target, before, after)
        self.cluster.check(Write(target, before, after, options))
        return after

    def _home(self, target: Target, name: str) -> None:
        resource = target.resource
        if not resource.namespaced:
            return
        home = self.store.get(("", "namespaces"), "", target.namespace)
        if home is None:
            raise not_found("namespaces", "", target.namespace)
        if home["metadata"].get("deletionTimestamp"):
            why = (
                f"unable to create new content in namespace {target.namespace} because it is being terminated"
            )
            cause = Cause(
                "NamespaceTerminating",
                f"namespace {target.namespace} is being terminated",
                "metadata.namespace",
            )
            raise forbidden(resource.plural, resource.group, name, why, [cause])

    def _stored(self, resource: Resource, after: Object, options: Options) -> Object:
        if options.dry_run:
            return after
        return resource.read(self.store.put(resource.key, resource.write(after)))

    def _unowned(self, resource: Resource, live: Object, when: str) -> managed.Owners:
        """The owner of the fields of an object that was never applied and was created while writers were not
        recorded.
        """
        paths, _ = managed.moved(resource.type, None, live, custom=resource.custom)
        return {Manager("before-first-apply", "Update", resource.api_version): (paths, when)}

    def _update_managed(self, target: Target, live: Object | None, after: Object, options: Options) -> Object:
        resource = target.resource
        if self.cluster.registry.minor < NOTES_ALL and not (live and managed.read(after)):
            return after
        who = Manager(options.manager, "Update", resource.api_version, target.subresource)
        changed, removed = managed.moved(resource.type, live, after, custom=resource.custom)
        if self._splits(target):
            changed = frozenset(path for path in changed if path[0] != "f:status")
        return managed.updated(
            after if live else None, after, who, stamp(self.cluster.clock.now()), (changed, removed)
        )

    def _decoded(self, resource: Resource, body: object, options: Options) -> Object:
        if not isinstance(body, dict):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): not a JSON object"
            )
        version, kind = body.get("apiVersion") or resource.api_version, body.get("kind") or resource.kind
        if kind != resource.kind:
            head = (
                f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {resource.kind}: '
            )
            raise bad_request(
                f"{head}converting ({version}.{kind}) to ({resource.group or 'core'}.{resource.kind}): "
                "unknown conversion"
            )
        if version != resource.api_version:
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        self._strict(resource, body, options)
        return {**body, "metadata": dict(body.get("metadata") or {})}

    def _strict(self, resource: Resource, body: Object, options: Options) -> None:
        found = list(problems(resource.type, body))
        wrong = [each for each in found if each.wanted]
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        if wrong and not resource.custom:
            raise bad_request(head + wrong[0].decoded.replace("field ", f"field {resource.kind}."))
        if wrong:
            raise invalid(
                resource.kind,
                resource.group,
                name_of(body),
                [Cause("FieldValueTypeInvalid", each.validated, each.path) for each in wrong],
            )
        unknown = [each.decoded for each in found if not each.wanted]
        if unknown and options.validation == "Strict":
            raise bad_request(f"{head}strict decoding error: {', '.join(unknown)}")
        if options.validation == "Warn":
            self.warnings += unknown

    def _addressed(self, target: Target, sent: Object) -> Object:
        metadata = sent["metadata"]
        if target.namespace and metadata.get("namespace", target.namespace) != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if target.name and metadata.get("name", target.name) != target.name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
                f"({target.name})"
            )
        extra = {"namespace": target.namespace} if target.namespace else {}
        return {**sent, "metadata": {**metadata, **({"name": target.name} if target.name else {}), **extra}}

    def _for_apply(self, target: Target, sent: object) -> Object:
        resource = target.resource
        if not isinstance(sent, dict) or not sent.get("apiVersion") or not sent.get("kind"):
            raise bad_request("invalid object type: apiVersion and kind must be set in an apply patch")
        if (sent["apiVersion"], sent["kind"]) != (resource.api_version, resource.kind):
            raise bad_request(
                f"the API version in the data ({sent['apiVersion']}) does not match the expected API "
                f"version ({resource.api_version})"
            )
        if sent.get("metadata", {}).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        ssa.check(resource.type, sent, resource.group, resource.version)
        return self._addressed(target, {**sent, "metadata": dict(sent.get("metadata") or {})})


def _body(thing: Object) -> Object:
    return {key: value for key, value in thing.items() if key not in ("metadata", "status")}


def _same_uid(resource: Resource, live: Object, sent: Object) -> None:
    wanted, uid = sent["metadata"].get("uid"), live["metadata"].get("uid", "")
    if wanted and wanted != uid:
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        raise conflict(resource.plural, resource.group, name_of(sent), why)
