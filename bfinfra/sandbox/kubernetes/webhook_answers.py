"""A webhook's answer: read as its version requires, reported as an API server reports it."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object

V1 = "admission.k8s.io/v1"
KIND = "{}, Kind=AdmissionReview"


class Unusable(Exception):
    """No answer, or none that can be used; failurePolicy decides what becomes of the write."""


@dataclass(frozen=True)
class Answer:
    """A webhook's verdict. `patch`: JSON patch; `status`: of a refusal."""

    allowed: bool
    patch: list[Any]
    status: Object
    warnings: tuple[str, ...]


def read(review: Any, version: str, uid: str, *, mutating: bool) -> Answer:
    """The verdict in an AdmissionReview. In v1 the answer must have its type and the request's uid; in
    v1beta1 it need not. Raises Unusable, Refused.
    """
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise Unusable("webhook response was absent")
    if version == "v1":
        _is_v1(review, response, uid, mutating=mutating)
    return Answer(
        bool(response.get("allowed")),
        _patch(response) if mutating else [],
        response.get("status") or {},
        tuple(response.get("warnings") or ()),
    )


def _is_v1(review: Object, response: Object, uid: str, *, mutating: bool) -> None:
    if response.get("uid") != uid:
        raise Unusable(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    got = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
    if got != KIND.format(V1):
        raise Unusable(
            f"expected webhook response of {KIND.format(V1)}, got "
            f"{got if review.get('apiVersion') else '/, Kind='}"
        )
    has = {name: bool(response.get(name)) for name in ("patch", "patchType")}
    if not mutating and any(has.values()):
        raise Unusable(
            f"validating webhook may not return response.{'patch' if has['patch'] else 'patchType'}"
        )
    if has["patch"] and not has["patchType"]:
        raise Unusable("webhook returned response.patch but not response.patchType")
    if has["patchType"] and not has["patch"]:
        raise Unusable("webhook returned response.patchType but not response.patch")


def _patch(response: Object) -> list[Any]:
    if not response.get("patch"):
        return []
    if response.get("patchType", "JSONPatch") != "JSONPatch":
        raise Unusable(f'unsupported patch type "{response["patchType"]}"')
    try:
        patch = json.loads(base64.b64decode(response["patch"], validate=True))
    except (binascii.Error, ValueError, TypeError) as broken:
        raise failed(str(broken)) from broken
    if not isinstance(patch, list):
        raise failed("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    return patch


def failed(why: str) -> Refused:
    """500: the server could not do its part."""
    return Refused(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def denied(name: str, status: Object) -> Refused:
    """The webhook's own refusal: its words and its code, 400 where it names none."""
    head, reason = (
        f'admission webhook "{name}" denied the request',
        status.get("message") or status.get("reason") or "",
    )
    return Refused(
        max(int(status.get("code") or 0), 400),
        str(status.get("reason") or ""),
        f"{head}: {reason}" if reason else f"{head} without explanation",
        status.get("details"),
    )
