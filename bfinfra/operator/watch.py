"""The part for kopf: it watches Sites, Jobs and their pods, and starts a watch again whenever it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import kopf

from bfinfra.operator.crd import GROUP, PLURAL, VERSION
from bfinfra.operator.keeper import SELECTOR, Keeper

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.access import Access

CHUNK = 500  # objects for each list request
ENDED = "status.phase!=Pending,status.phase!=Running"  # of pods only the termination message matters


def watch(
    keeper: Keeper, enter: Callable[[], Access], namespaces: Sequence[str], stop: threading.Event
) -> None:
    """Report every change to `keeper`, until `stop`. `namespaces`: () for all."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False  # the keeper sends the Events itself; handlers send none
        settings.watching.chunk_size = CHUNK
        settings.watching.label_selectors["batch", "v1", "jobs"] = SELECTOR
        settings.watching.label_selectors["", "v1", "pods"] = SELECTOR
        settings.watching.field_selectors["", "v1", "pods"] = ENDED
        settings.scanning.disabled = True  # the watched types are known and don't change

    @kopf.on.cleanup(registry=registry)
    async def ended(**_: Any) -> None:
        stop.set()  # kopf took a signal: one of its threads waits for `stop`, and it waits for that thread

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return connection(enter())

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def site(event: kopf.RawEvent, **_: Any) -> None:
        keeper.site(event["object"], gone=event["type"] == "DELETED")

    @kopf.on.event("batch", "v1", "jobs", registry=registry)
    async def job(event: kopf.RawEvent, **_: Any) -> None:
        if ours(event["object"]):
            keeper.job(event["object"], gone=event["type"] == "DELETED")

    @kopf.on.event("", "v1", "pods", registry=registry)
    async def pod(event: kopf.RawEvent, **_: Any) -> None:
        if event["type"] != "DELETED" and ours(event["object"]):
            keeper.pod(event["object"])

    kopf.run(
        registry=registry,
        standalone=True,
        clusterwide=not namespaces,
        namespaces=tuple(namespaces),
        stop_flag=stop,
    )


def ours(body: Mapping[str, Any]) -> bool:
    """Return whether it has the label of a Site's Jobs. The server has filtered by it already, if it can."""
    return (body["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by") == "bfinfra-operator"


def connection(access: Access) -> kopf.ConnectionInfo:
    """The same account for kopf's own client."""
    pem = access.trust.ca_pem or access.extra_pem or None
    certificate, key = access.identity or (None, None)
    return kopf.ConnectionInfo(
        server=access.url,
        ca_data=pem,
        token=access.token or None,
        scheme="Bearer" if access.token else None,
        certificate_data=certificate,
        private_key_data=key,
    )
