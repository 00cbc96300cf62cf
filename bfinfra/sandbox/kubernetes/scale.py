"""The scale subresource: the live and the desired replicas of an object, as a Scale; and the refusal of
subresources that are not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.kubernetes.errors import (
    Refused,
    bad_request,
    conflict,
    qualified,
    unsupported_media_type,
)
from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.patches import json_patch, merge_patch
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.writes import Writer

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def kind_of(target: Target) -> str:
    """The kind of the subresource's bodies; "" if it is the object's own."""
    kind = target.resource.subresources[target.subresource][0] if target.subresource else ""
    return "" if kind == target.resource.kind else kind


def refuse(target: Target) -> Refused:
    """501: what a real server does here, the sandbox doesn't."""
    name = qualified(target.resource.plural, target.resource.group)
    return Refused(
        501,
        "NotImplemented",
        f"the sandbox does not implement the subresource {target.subresource} of {name}",
        {"kind": name},
    )


def answer(cluster: AdmittingCluster, target: Target, kind: str, body: object, options: Options) -> Object:
    """Read, replace or patch a Scale; `kind` is the patch's content type. Writes the object's replicas."""
    writer = Writer(cluster)
    if target.verb == "get":
        return _shown(target.resource.read(writer.found(target)))

    def scaled(live: Object) -> Object:
        before = _shown(live)
        after = _changed(target, before, kind, body)
        if (
            dig(after, "metadata", "resourceVersion", default=before["metadata"]["resourceVersion"])
            != before["metadata"]["resourceVersion"]
        ):
            raise conflict(target.resource.plural, target.resource.group, target.name)
        replicas = dig(after, "spec", "replicas", default=0)
        if not isinstance(replicas, int) or replicas < 0:
            raise bad_request(
                f"spec.replicas: Invalid value: {replicas!r}: must be a whole number that is not negative"
            )
        return {**live, "spec": {**live["spec"], "replicas": replicas}}

    return _shown(writer.patch(target, scaled, options))


def _changed(target: Target, before: Object, kind: str, body: object) -> Object:
    if target.verb == "update" or kind in (
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ):
        after = body if target.verb == "update" else merge_patch(before, body)
    elif kind == "application/json-patch+json":
        after = json_patch(before, body)
    else:
        raise unsupported_media_type("application/json-patch+json, application/merge-patch+json")
    if not isinstance(after, dict):
        raise bad_request("the object provided is no Scale")
    return after


def _shown(live: Object) -> Object:
    metadata = {name: live["metadata"][name] for name in COPIED if name in live["metadata"]}
    labels = dig(live, "spec", "selector", "matchLabels", default={})
    status: Object = {"replicas": dig(live, "status", "replicas", default=0)}
    if labels:
        status["selector"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    spec = {"replicas": dig(live, "spec", "replicas", default=0)}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
