"""Events about a Site, as `kubectl describe` shows them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from bfinfra.operator.crd import KIND
from bfinfra.operator.desired import Desired
from bfinfra.operator.manifest import API
from bfinfra.operator.status import Notice


def moment(seconds: float) -> str:
    """Seconds since the epoch as Kubernetes writes them."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def event(wanted: Desired, notice: Notice, seconds: float) -> dict[str, Any]:
    """The manifest of an Event about a Site, at this time."""
    now = moment(seconds)
    about = {
        "apiVersion": API,
        "kind": KIND,
        "namespace": wanted.namespace,
        "name": wanted.name,
        "uid": wanted.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{wanted.name[:200]}.", "namespace": wanted.namespace},
        "involvedObject": about,
        "type": notice.kind,
        "reason": notice.reason,
        "message": notice.message[:1024],
        "source": {"component": "bfinfra-operator"},
        "reportingComponent": "bfinfra.io/operator",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
