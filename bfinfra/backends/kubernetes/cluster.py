"""One Kubernetes API: list, get, create, apply, patch, delete, logs. Manifests are plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bfinfra.backends.kubernetes import errors, resources
from bfinfra.backends.kubernetes.contents import unmanaged
from bfinfra.backends.kubernetes.discovery import Discovery
from bfinfra.backends.kubernetes.marks import Marking
from bfinfra.backends.kubernetes.owned import claimed, handed_over, known
from bfinfra.backends.words import safe
from bfinfra.model.errors import Conflict, Missing, Rejected

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.access import Access
    from bfinfra.backends.transport import Transport

Object = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]
FEW = 3  # objects that are read one by one
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
CLAIMS = 5  # of a new object, as controllers may write its status meanwhile
LOG_BYTES = 1 << 20  # of a log, from its start or its end


class Selected(NamedTuple):
    """The objects of a kind that have some labels; `namespace` "": everywhere."""

    api_version: str
    kind: str
    namespace: str
    labels: str


class ClusterClient(Discovery):
    """The operations on a cluster. They raise RemoteError and its subclasses; safe in several threads."""

    def __init__(
        self, transport: Transport, name: str, enter: Callable[[], Access], namespace: str = ""
    ) -> None:
        super().__init__(transport, name, enter)
        self._namespace = namespace
        self.selected: set[Selected] = set()
        """Lists by labels that had objects in them."""
        self.selects_all = False
        """Whether those without objects are noted too."""
        self._discovered: dict[tuple[str, str], resources.Resource] = {}

    def list(
        self, api_version: str, kind: str, namespace: str = "", labels: str = "", *, name: str = ""
    ) -> list[Object]:
        """All objects of a kind, page by page. `namespace` "": everywhere; `labels`: a selector (`a=b,c`);
        `name`: only those with this name.
        """
        resource = self._resource(api_version, kind)
        scope = {"namespace": namespace or "*"} if resource.namespaced else {}
        found = self.paged(
            lambda size: self._do(
                lambda link: [
                    *link.objects.list(
                        _class(resource),
                        labels=_pairs(labels),
                        fields={"metadata.name": name} if name else None,
                        chunk_size=size,
                        **scope,
                    )
                ]
            )
        )
        if labels and (found or self.selects_all):
            self.selected.add(Selected(api_version, kind, namespace, labels))
        return [{**item, "apiVersion": api_version, "kind": kind} for item in found]

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None. Raises NotServed if the cluster doesn't know the kind."""
        resource = self._resource(api_version, kind)
        _segment(name, self.name)
        try:
            return dict(
                self._do(lambda link: link.objects.get(_class(resource), name, **_scope(resource, namespace)))
            )
        except errors.NotServed:
            raise
        except Missing:
            return None

    def find(
        self,
        api_version: str,
        kind: str,
        places: Iterable[tuple[str, str]],
        namespace: str = "",
        names: Callable[[], Container[tuple[str, str]]] | None = None,
    ) -> tuple[Object, ...]:
        """The objects at these places, (namespace, name) each, all within `namespace` as for `list`.

        With many places, only those that `names` returns are read: a list without contents, by default this
        class's own.
        """
        looked = tuple(places)
        if len(looked) > FEW:
            there = names() if names else self.names(api_version, kind, namespace)
            looked = tuple(place for place in looked if place in there)
        found = (self.get(api_version, kind, name, space) for space, name in looked)
        return tuple({**thing, "apiVersion": api_version, "kind": kind} for thing in found if thing)

    def create(self, manifest: Mapping[str, object]) -> Object:
        """Create the object. Raises Exists if the name is taken."""
        cls, scope = self._of(manifest)
        made = dict(self._do(lambda link: link.objects.create(cls(manifest), **scope)))
        return (
            made
            if made["metadata"].get("managedFields") or not made["metadata"].get("uid")
            else self._claimed(cls, scope, known(manifest, made), made)
        )

    def _claimed(self, cls: Any, scope: dict[str, str], manifest: Mapping[str, Any], made: Object) -> Object:
        """Take ownership of a new object's fields, on a server that records writers only from the first
        apply, so that they can be removed later.
        """
        name = str(made["metadata"]["name"])
        applied = dict(
            self._do(
                lambda link: link.objects.apply(
                    cls({**manifest, "metadata": {**manifest["metadata"], "name": name}}), **scope
                )
            )
        )
        for left in reversed(range(CLAIMS)):
            if not (fields := claimed(applied)):
                break
            try:
                return self._owned_as(cls, name, scope, applied, fields)
            except Conflict:
                if not left:
                    raise
                applied = dict(self._do(lambda link: link.objects.get(cls, name, **scope)))
        return applied

    def _owned_as(
        self, cls: object, name: str, scope: dict[str, str], live: Object, fields: Sequence[Object]
    ) -> Object:
        return self._patch(
            cls,
            name,
            scope,
            "json",
            [
                {"op": "replace", "path": "/metadata/managedFields", "value": fields},
                {
                    "op": "replace",
                    "path": "/metadata/resourceVersion",
                    "value": live["metadata"]["resourceVersion"],
                },
            ],
        )

    def apply(self, manifest: Mapping[str, Any], *, force: bool = False) -> Object:
        """Server-side apply: bfinfra's fields become exactly these. Raises Conflict if another writer owns
        one, unless `force`. A Marking is a merge patch: an apply would take away what bfinfra applied
        earlier. Raises Conflict for an object of another uid.
        """
        cls, scope = self._of(manifest)
        name = manifest["metadata"]["name"]
        if isinstance(manifest, Marking):
            return self._patch(cls, name, scope, "merge", dict(manifest))
        live = self.get(manifest["apiVersion"], manifest["kind"], name, scope.get("namespace", ""))
        if live and (fields := handed_over(live)):
            self._owned_as(cls, name, scope, live, fields)
        return dict(self._do(lambda link: link.objects.apply(cls(manifest), force=force, **scope)))

    def patch(
        self, api_version: str, kind: str, name: str, body: Mapping[str, object], namespace: str = ""
    ) -> Object:
        """Merge patch: given fields change, null removes. With `metadata.resourceVersion` in it, only the
        version that was read is changed.
        """
        resource = self._resource(api_version, kind)
        _segment(name, self.name)
        return self._patch(_class(resource), name, _scope(resource, namespace), "merge", dict(body))

    def patch_status(
        self, api_version: str, kind: str, name: str, status: Mapping[str, object], namespace: str = ""
    ) -> Object:
        """Merge patch of an object's status only."""
        return self._patch_status(api_version, kind, name, namespace, {"status": dict(status)})

    def patch_status_of(self, seen: Object, status: Mapping[str, object]) -> Object:
        """The same for an object as it was read. Raises Conflict if it has changed."""
        meta = seen["metadata"]
        body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": dict(status)}
        return self._patch_status(
            seen["apiVersion"], seen["kind"], meta["name"], meta.get("namespace", ""), body
        )

    def _patch_status(
        self, api_version: str, kind: str, name: str, namespace: str, body: Mapping[str, object]
    ) -> Object:
        resource = self._resource(api_version, kind)
        _segment(name, self.name)
        space = f"/namespaces/{namespace or 'default'}" if resource.namespaced else ""
        path = f"{resources.path(api_version)}{space}/{resource.plural}/{name}/status"
        headers = {"Content-Type": "application/merge-patch+json"}
        return dict(self._do(lambda link: link.raw.patch(path, json=body, headers=headers).json()))

    def delete(  # noqa: PLR0913 - an object's address, and how it goes
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation = "Background",
        preconditions: Mapping[str, str] | None = None,
    ) -> Object | None:
        """Delete the object. Returns None if it is gone (also if it was before), else the object that is
        being deleted.

        `preconditions`: `uid` and `resourceVersion`. Raises Conflict if the object has others by now.
        """
        resource = self._resource(api_version, kind)
        _segment(name, self.name)
        space = f"/namespaces/{namespace or 'default'}" if resource.namespaced else ""
        body = (
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": propagation,
                "preconditions": dict(preconditions),
            }
            if preconditions
            else None
        )
        params = None if body else {"propagationPolicy": propagation}  # servers accept either
        path = f"{resources.path(api_version)}{space}/{resource.plural}/{name}"
        try:
            answer = self._do(lambda link: link.raw.request("DELETE", path, params=params, json=body).json())
        except errors.NotServed:
            raise
        except Missing:
            return None
        return answer if isinstance(answer, dict) and answer.get("kind") == kind else None

    def evict(self, pod: str, namespace: str) -> None:
        """Evict a pod, as `kubectl drain` does; nothing happens if it is gone. Raises Busy while its
        disruption budget keeps it.
        """
        _segment(pod, self.name)
        version = "v1" if "v1" in self.versions("policy") else "v1beta1"
        body = {
            "apiVersion": f"policy/{version}",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        try:
            self._do(
                lambda link: link.raw.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", json=body)
            )
        except errors.NotServed:
            raise
        except Missing:
            return

    def log(self, pod: str, container: str = "", namespace: str = "default", tail: int | None = None) -> str:
        """A container's log: its first 1 MiB, or its last `tail` lines."""
        _segment(pod, self.name)
        asked = {"container": container, "limitBytes": LOG_BYTES, "tailLines": tail}
        params = {name: str(value) for name, value in asked.items() if value}
        return self._do(
            lambda link: link.raw.get(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", params=params).text
        )

    def can(self, verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
        """Return whether this login may `verb` `resource` (`pods`, `pods/log`, `deployments.apps`) in the
        namespace ("": everywhere); `name`: only that object.
        """
        whole, _, group = resource.partition(".")
        plural, _, part = whole.partition("/")
        asked = {
            "verb": verb,
            "resource": plural,
            "subresource": part,
            "group": group,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        cls, _ = self._of(review)
        return bool(
            (self._do(lambda link: link.objects.create(cls(review))).get("status") or {}).get("allowed")
        )

    def version(self) -> str:
        """The server's version, such as `v1.20.2+vmware.1`."""
        answer = self._json("/version")
        if not isinstance(answer, dict) or not isinstance(answer.get("gitVersion"), str):
            raise errors.malformed("GET /version", self.name, "no gitVersion in it")
        return safe(answer["gitVersion"], 80)

    def now(self) -> datetime | None:
        """The server's own time in UTC, to the second; None if it sends none."""
        date = self._do(lambda link: link.raw.get("/version").headers.get("date", ""))
        try:
            return parsedate_to_datetime(date)
        except ValueError:
            return None

    def unmanaged(self, site: str, namespace: str = "") -> tuple[str, ...]:
        """Objects that the site did not make, such as `Pod default/web`: in the namespace, else in the
        endpoint's, else in all but the system's.
        """
        return unmanaged(self.list, namespace or self._namespace, site)

    def names(self, api_version: str, kind: str, namespace: str = "") -> set[tuple[str, str]]:
        """The places of a kind's objects, (namespace, name) each; `namespace` "": everywhere."""
        resource = self._resource(api_version, kind)
        return self.paged(lambda size: self._names(resource, namespace, size))

    def _names(self, resource: resources.Resource, namespace: str, size: int) -> set[tuple[str, str]]:
        token, found = "", set[tuple[str, str]]()
        space = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
        while True:
            params = {"limit": str(size), **({"continue": token} if token else {})}
            page = self._json(
                f"{resources.path(resource.api_version)}{space}/{resource.plural}", params, METADATA
            )
            try:
                found |= {
                    (item["metadata"].get("namespace", ""), item["metadata"]["name"])
                    for item in page["items"] or ()
                }
                token = str((page.get("metadata") or {}).get("continue") or "")
            except (KeyError, TypeError, AttributeError):
                raise errors.malformed(
                    f"list {resource.plural}", self.name, "no list of objects with names"
                ) from None
            if not token:
                return found

    def path_of(self, of: Selected) -> str:
        """The path at which such objects are listed."""
        resource = self._resource(of.api_version, of.kind)
        space = f"/namespaces/{of.namespace}" if of.namespace and resource.namespaced else ""
        return f"{resources.path(of.api_version)}{space}/{resource.plural}"

    def _patch(self, cls: object, name: str, scope: dict[str, str], how: str, body: object) -> Object:
        from lightkube.types import PatchType  # noqa: PLC0415 - start-up is a feature

        kind = {"merge": PatchType.MERGE, "json": PatchType.JSON}[how]
        return dict(self._do(lambda link: link.objects.patch(cls, name, body, patch_type=kind, **scope)))

    def _of(self, manifest: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        resource = self._resource(manifest["apiVersion"], manifest["kind"])
        return _class(resource), _scope(resource, (manifest.get("metadata") or {}).get("namespace", ""))

    def _resource(self, api_version: str, kind: str) -> resources.Resource:
        key = api_version, kind
        if found := resources.KNOWN.get(key) or self._discovered.get(key):
            return found
        self._discovered |= resources.discovered(api_version, self._json(resources.path(api_version)))
        if key not in self._discovered:
            raise errors.NotServed(
                f"{self.name} has no {kind}", server=self.name, why=f"{api_version} does not list it"
            )
        return self._discovered[key]


def _segment(name: str, server: str) -> None:
    """A name as part of a path. Raises for a name that would lead elsewhere."""
    if not name or "/" in name or "%" in name or name in (".", ".."):
        raise Rejected(
            f"{safe(name, 80)!r} is not a name of an object", server=server, next="correct the name"
        )


def _class(resource: resources.Resource) -> Any:
    from bfinfra.backends.kubernetes.link import resource_class  # noqa: PLC0415 - lightkube is loaded when a cluster is first asked

    return resource_class(resource)


def _scope(resource: resources.Resource, namespace: str) -> dict[str, str]:
    return {"namespace": namespace or "default"} if resource.namespaced else {}


def _pairs(labels: str) -> Any:
    found = [part.partition("=") for part in labels.split(",") if part]
    return {name: value if equals else None for name, equals, value in found} or None
