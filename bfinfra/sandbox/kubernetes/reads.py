"""Get, list and watch."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.handler import Request, Response, as_json
from bfinfra.sandbox.kubernetes.errors import Refused, bad_request
from bfinfra.sandbox.kubernetes.objects import Object, name_of, namespace_of
from bfinfra.sandbox.kubernetes.selectors import Match, by_fields, by_labels
from bfinfra.sandbox.kubernetes.store import Change
from bfinfra.sandbox.kubernetes.tables import as_metadata, as_table, wants_metadata, wants_table
from bfinfra.sandbox.kubernetes.target import Target
from bfinfra.sandbox.kubernetes.writes import Writer

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

Shape = Callable[[Object], Object]
BOOKMARK_EVERY = 60.0
TRUE = ("1", "true")


@dataclass(frozen=True)
class Selection:
    """The options of a watch. `since` 0 starts with the existing objects; `marks_whole`: send a bookmark
    after all of them.
    """

    target: Target
    matches: Match
    shape: Shape
    since: int
    seconds: float
    marks_whole: bool
    bookmarks: bool


def get(cluster: AdmittingCluster, target: Target, request: Request) -> Response:
    """One object."""
    thing = target.resource.read(Writer(cluster).found(target))
    return as_json(
        as_table(target.resource, [thing], cluster.clock.now(), thing["metadata"])
        if wants_table(request)
        else thing
    )


def listed(cluster: AdmittingCluster, target: Target, request: Request) -> Response:
    """A list, whole or page by page (limit, continue)."""
    resource, params = target.resource, request.params
    matches = selection(target, request)
    with cluster.store.lock:
        revision = cluster.store.revision
        things = [thing for thing in cluster.store.all(resource.key, target.namespace) if matches(thing)]
    metadata: Object = {"resourceVersion": str(revision)}
    start = _continued(params.get("continue", ""))
    if start:
        revision = start[0]
        things = [thing for thing in things if [namespace_of(thing), name_of(thing)] > start[1]]
        metadata["resourceVersion"] = str(revision)
    limit = int(params.get("limit") or 0)
    if limit and len(things) > limit:
        last = things[limit - 1]
        metadata |= {"continue": _token(revision, last), "remainingItemCount": len(things) - limit}
        things = things[:limit]
    if resource.custom:
        metadata.setdefault("continue", "")
    things = [resource.read(thing) for thing in things]
    if wants_table(request):
        return as_json(as_table(resource, things, cluster.clock.now(), metadata))
    if wants_metadata(request):
        return as_json(as_metadata(things, metadata))
    items = things if resource.custom else [_without_type(thing) for thing in things]
    return as_json(
        {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": items,
        }
    )


def watch(cluster: AdmittingCluster, target: Target, request: Request) -> Response:
    """A stream of events since a revision; from a list's state where none (or 0) is given."""
    params, matches = request.params, selection(target, request)
    version = params.get("resourceVersion") or "0"
    if not version.isdigit():
        raise bad_request(f"invalid resource version {version!r}")
    shape: Shape = target.resource.read
    if wants_table(request):
        shape = lambda thing: as_table(  # noqa: E731 - the other of two shapes
            target.resource, [target.resource.read(thing)], cluster.clock.now(), {}
        )
    whole = params.get("sendInitialEvents") in TRUE
    watched = Selection(
        target,
        matches,
        shape,
        0 if whole else int(version),
        float(params.get("timeoutSeconds") or 3600),
        whole,
        bookmarks=params.get("allowWatchBookmarks") in TRUE,
    )
    return Response(200, _events(cluster, watched), {"content-type": "application/json"})


def selection(target: Target, request: Request) -> Match:
    """Labels and fields that a list, watch or deletecollection asks for."""
    params = request.params
    labels = by_labels(params.get("labelSelector", ""))
    fields = by_fields(params.get("fieldSelector", ""), target.resource.kind)
    return lambda thing: (
        labels(thing) and fields(thing) and (not target.name or name_of(thing) == target.name)
    )


def _events(cluster: AdmittingCluster, watched: Selection) -> Iterator[bytes]:
    store, revision, end = cluster.store, watched.since, cluster.clock.now() + watched.seconds
    if revision == 0:
        with store.lock:
            revision, present = (
                store.revision,
                [
                    thing
                    for thing in store.all(watched.target.resource.key, watched.target.namespace)
                    if watched.matches(thing)
                ],
            )
        for thing in present:
            yield _line("ADDED", watched.shape(thing))
        if watched.marks_whole:
            yield _line(
                "BOOKMARK",
                _bookmark(watched.target, revision, {"annotations": {"k8s.io/initial-events-end": "true"}}),
            )
    while not store.closed and (left := end - cluster.clock.now()) > 0:
        try:
            changes = store.since(revision)
        except Refused as old:
            yield _line("ERROR", old.body())
            return
        for change in changes:
            revision = change.revision
            kind = _event_type(change, watched.target, watched.matches)
            if kind:
                yield _line(kind, watched.shape(change.after))
        store.wait(revision, min(left, BOOKMARK_EVERY))
        if watched.bookmarks and store.revision == revision:
            yield _line("BOOKMARK", _bookmark(watched.target, revision))


def _event_type(change: Change, target: Target, matches: Match) -> str:
    if change.key != target.resource.key or (
        target.namespace and namespace_of(change.after) != target.namespace
    ):
        return ""
    now = change.kind != "DELETED" and matches(change.after)
    before = change.before is not None and matches(change.before)
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


def _bookmark(target: Target, revision: int, extra: Object | None = None) -> Object:
    resource = target.resource
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(revision), **(extra or {})},
    }


def _line(kind: str, thing: Object) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def _without_type(thing: Object) -> Object:
    return {key: value for key, value in thing.items() if key not in ("kind", "apiVersion")}


def _token(revision: int, last: Object) -> str:
    return base64.urlsafe_b64encode(
        json.dumps([revision, [namespace_of(last), name_of(last)]]).encode()
    ).decode()


def _continued(token: str) -> tuple[int, list[str]] | None:
    if not token:
        return None
    try:
        revision, home = json.loads(base64.urlsafe_b64decode(token))
    except ValueError:
        raise bad_request("continue key is not valid") from None
    return int(revision), home
