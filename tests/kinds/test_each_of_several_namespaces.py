"""A token and a credential are written to each of several namespaces, mended in each, and leave each."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from at_cluster import Site
from kinds.of_several import of_several

SPACES = ("of-several-a", "of-several-b")
SECRETS = {"token_secret": ("bitfusion-secret", "ca.crt"), "registry_credential": ("it", ".dockerconfigjson")}


@pytest.fixture
def api(sandbox_api: Any) -> Any:
    return sandbox_api


@pytest.fixture
def site(tmp_path: Path, api: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("HARBOR_PASSWORD", "s3cr3t")
    for space in SPACES:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    yield Site(tmp_path, api)
    for space in SPACES:
        cluster.delete("v1", "Namespace", space)


def given(kind: str, *spaces: str) -> dict[str, Any]:
    own: dict[str, dict[str, Any]] = {
        "token_secret": {"token": "tok", "form": "single"},
        "registry_credential": {
            "server": "172.24.206.3",
            "username": "me",
            "password": {"env": "HARBOR_PASSWORD"},
        },
    }
    return {kind: {"it": {"cluster": "k", "namespaces": [*spaces], **own[kind]}}}


def held(cluster: Any, kind: str) -> dict[str, bytes | None]:
    """By namespace: the content of the Secret there."""
    name, key = SECRETS[kind]
    found = {space: cluster.get("v1", "Secret", name, space) for space in SPACES}
    return {space: secret and base64.b64decode(secret["data"][key]) for space, secret in found.items()}


@of_several("token_secret.namespaces", "registry_credential.namespaces")
@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_the_same_in_each_namespace_and_leaves_each(site: Site, cluster: Any, kind: str) -> None:
    site.resources = given(kind, *SPACES)
    site.applied()
    first, second = held(cluster, kind).values()
    assert first is not None
    assert first == second
    name, key = SECRETS[kind]
    cluster.patch("v1", "Secret", name, {"data": {key: "eA=="}}, SPACES[1])
    (change,) = site.item(f"{kind}/it").changes
    assert SPACES[1] in change.field
    site.applied()
    assert held(cluster, kind) == dict.fromkeys(SPACES, first)
    site.resources = given(kind, SPACES[1])
    site.applied()
    assert held(cluster, kind) == {SPACES[0]: None, SPACES[1]: first}
    site.resources = {}
    site.applied()
    assert held(cluster, kind) == dict.fromkeys(SPACES)
