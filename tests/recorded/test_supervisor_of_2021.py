"""A real supervisor of 2021 (Kubernetes 1.18): its login, its namespaces, what they offer; bfinfra's readers
on what was recorded.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from recorded.conftest import Held
from recorded.sources import Exchange, cassette, stored

from bfinfra.backends.kubernetes import access, login
from bfinfra.kinds.supervisor.base import offers
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Missing

SOURCE = "supervisor of 2021, vcr cassette"
CASSETTE = "supervisor-2021/container_manager.yml.gz"
UNLIMITED = "9223372036854775807"


@functools.cache
def recorded() -> Mapping[str, Exchange]:
    """By path, without the query."""
    text = gzip.decompress(stored(CASSETTE).read_bytes()).decode()
    return {httpx2.URL(each.uri).path: each for each in cassette(CASSETTE, text)}


def items(path: str) -> list[Any]:
    return list(json.loads(recorded()[path].answer)["items"])


class Recorded:
    """A cluster that answers what was recorded; what wasn't is not served."""

    def list(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[Any]:
        path = f"/api/{api_version}/{kind.lower()}s"
        if path not in recorded():
            raise Missing(f"{path} was not recorded")
        return [each for each in items(path) if namespace in ("", each["metadata"].get("namespace"))]


def test_its_login_gives_a_token_though_it_calls_itself_html(held: Held) -> None:
    each = recorded()["/wcp/login"]
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(
            each.status, content=each.answer, headers={"content-type": "text/html", "server": "VMware-WCP"}
        )
    )
    endpoint = Endpoint(server="supervisor.test:443")
    who: Any = SimpleNamespace(
        username="administrator@vsphere.local", password=SimpleNamespace(reveal=lambda: "x")
    )
    with httpx2.Client(transport=transport, base_url="https://supervisor.test") as client:
        answer = login._post(client, who, {}, endpoint)
    token = login._text(answer, "session_id", endpoint)
    held(f"{SOURCE}: login", [] if token == "SESSION_TOKEN_REMOVED" else [token], 1)
    assert access.expiry(token) is None, "the recording has no token of which the end could be read"


def test_a_namespace_of_vcenter_is_recognised_by_its_label(held: Held) -> None:
    of_vcenter = [
        each["metadata"]
        for each in items("/api/v1/namespaces")
        if "vSphereClusterID" in (each["metadata"].get("labels") or {})
    ]
    wrong = [] if [each["name"] for each in of_vcenter] == ["production"] else [str(of_vcenter)]
    wrong += (
        []
        if set(of_vcenter[0]["annotations"]) == {"vmware-system-resource-pool", "vmware-system-vm-folder"}
        else [str(of_vcenter[0])]
    )
    held(f"{SOURCE}: namespaces", wrong, 1)


def test_storage_is_offered_by_quota(held: Held) -> None:
    """Without a limit, which is the largest number there is."""
    found = offers.read(Recorded(), "production")
    (quota,) = items("/api/v1/resourcequotas")
    assert (quota["metadata"]["name"], [*quota["spec"]["hard"].values()]) == (
        "production-storagequota",
        [UNLIMITED],
    )
    held(f"{SOURCE}: quotas", [] if found.storage_classes == {"ben"} else [str(found)], 1)
    assert (found.vm_classes, found.versions) == (None, None), "what was not recorded is not known"


@pytest.mark.parametrize(
    "path", ["/api/v1/nodes", "/api/v1/pods", "/api/v1/services", "/api/v1/endpoints", "/api/v1/limitranges"]
)
def test_every_list_has_names(path: str, held: Held) -> None:
    found = items(path)
    held(
        f"{SOURCE}: lists",
        [str(each)[:200] for each in found if not each["metadata"].get("name")],
        len(found),
    )
