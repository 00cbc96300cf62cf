"""The suite's own promises: every call is covered, the table is what was seen, cassettes hold no secrets and
name their peer.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import yaml
from contract import table
from contract.cassette import NotOnTape, Tape
from contract.scrub import HIDDEN, Scrub, leaks
from contract.sides import CASSETTES

from bfinfra.backends import vcenter
from bfinfra.backends.kubernetes.cluster import ClusterClient
from bfinfra.backends.kubernetes.clusters import Clusters
from bfinfra.backends.vcenter.client import VCenter
from bfinfra.backends.vcenter.rest import Rest
from bfinfra.backends.vcenter.session import SoapSession

ROOT = Path(__file__).parents[2]
ENTRANCES = (VCenter, SoapSession, Rest)
NO_CALL = {
    "session.forget",
    "session.open",
    "client.close",
    "client.share",
    "cluster.close",
    "cluster.paged",
    "cluster.path_of",
    "clusters.close",
    "clusters.following_all",
    "clusters.selections",
    "rest.headers",
}
"""They send nothing, or no more than a login."""
ON_THE_WAY = {"certificates.HostTrust"}
"""What other backends use on their way, and are covered with."""
TAPES = sorted(CASSETTES.rglob("*.yaml"))


def backends() -> Iterator[tuple[str, type]]:
    """Every class of a vCenter backend that asks through another, and those two of Kubernetes; a call is named
    by the module: `pools.create`.
    """
    asks = {each.__name__ for each in ENTRANCES}
    for each in pkgutil.iter_modules(vcenter.__path__):
        module = importlib.import_module(f"{vcenter.__name__}.{each.name}")
        for name, cls in inspect.getmembers(module, inspect.isclass):
            taken = {*getattr(cls.__init__, "__annotations__", {}).values()}
            own = cls.__module__ == module.__name__ and f"{each.name}.{name}" not in ON_THE_WAY
            if own and (cls in ENTRANCES or asks & taken):
                yield each.name, cls
    yield from (("cluster", ClusterClient), ("clusters", Clusters))


def test_every_call_of_every_backend_is_covered() -> None:
    public = {
        f"{noun}.{name}"
        for noun, cls in backends()
        for base in inspect.getmro(cls)
        for name, value in vars(base).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    covered = {call for each in table.results().values() for call in each["about"]["calls"]}
    assert public - NO_CALL - covered == set()
    assert covered - public == set()


@pytest.mark.parametrize("page", table.pages(table.results()), ids=lambda page: page[0].stem)
def test_the_table_is_what_was_seen(page: tuple[Path, str]) -> None:
    file, part = page
    assert table.inserted(file.read_text(), part) == file.read_text(), (
        "run script/record, or: python tests/contract/table.py"
    )


def test_nobody_lacks_anything_without_being_named() -> None:
    """A case that passes on one side only has the other side's lack written on it."""
    for name, each in table.results().items():
        peer = "kube-apiserver" if "kubernetes" in name or "definitions" in name else "vcsim"
        for side in ("sandbox", peer):
            assert each.get(side, {}).get("outcome") == "passed" or side in each["about"]["lacks"], (
                f"{side} in {name}"
            )


def test_there_is_a_cassette_for_each_case_that_a_peer_passes() -> None:
    wanted = {
        (peer, name)
        for name, each in table.results().items()
        for peer in ("vcsim", "kube-apiserver")
        if each.get(peer, {}).get("outcome") == "passed" and set(each["about"]["lacks"]) <= {"sandbox"}
    }
    names = {re.sub(r"\W+", "-", name.removeprefix("test_contract_")).strip("-") for _, name in wanted}
    assert {tape.stem for tape in TAPES} == names


@pytest.mark.parametrize("tape", TAPES, ids=lambda tape: tape.stem)
def test_a_cassette_holds_no_secret_and_names_its_peer(tape: Path) -> None:
    text = tape.read_text()
    assert leaks(text) == []
    assert "canary-of-the-contract" not in text
    found = yaml.load(text, Loader=yaml.CSafeLoader)
    assert next(iter(found)) == "metadata"
    assert {"peer", "version", "recorded"} <= set(found["metadata"])
    assert tape.parent.name == f"{found['metadata']['peer']}-{found['metadata']['version']}"
    kept = {
        name.lower()
        for each in found["interactions"]
        for part in ("request", "response")
        for name in each[part]["headers"]
    }
    assert kept <= {"accept", "content-type", "soapaction", "retry-after"}
    assert not re.search(r"127\.0\.0\.1:\d+", text), "an address of the run"
    assert len(text) < 1_000_000


SECRETS = {
    "soap": (
        b'<Login xmlns="urn:vim25"><userName>u</userName><password>pa&amp;ss-1</password></Login>',
        "text/xml",
    ),
    "property": (
        b"<propertyMapping><key>vcenter_password</key><value>pa&amp;ss-1</value></propertyMapping>",
        "text/xml",
    ),
    "token": (
        b'{"kind":"Secret","data":{"ca.crt":"cGEmc3MtMQ=="},"stringData":{"x":"pa&ss-1"}}',
        "application/json",
    ),
    "jwt": (b'{"session_id":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl"}', "application/json"),
    "key": (b"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIr\n-----END EC PRIVATE KEY-----\n", "text/plain"),
    "list": (
        b'{"kind":"SecretList","items":[{"metadata":{"name":"s"},"data":{"a":"cGEmc3MtMQ=="}}]}',
        "application/json",
    ),
    "session": (
        b'<returnval type="ListView">session[52a1b2c3-aaaa-bbbb-cccc-0123456789ab]5d3f</returnval>',
        "text/xml",
    ),
}
SECRET_WORDS = (
    "pa&ss-1",
    "pa&amp;ss-1",
    "cGEmc3MtMQ==",
    "eyJhbGciOiJIUzI1NiJ9",
    "MHcCAQEEIIr",
    "52a1b2c3",
    "cookie-4711",
    "id-4711",
    "bearer-4711",
)


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_recorded_is_scrubbed(name: str, tmp_path: Path) -> None:
    data, kind = SECRETS[name]
    answer = {
        "content-type": kind,
        "set-cookie": "vmware_soap_session=cookie-4711",
        "vmware-api-session-id": "id-4711",
    }
    inner = httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers=answer, content=request.content)
    )
    tape = Tape(tmp_path / "t.yaml", Scrub({"127.0.0.1:4711": "peer.test"}, ("pa&ss-1",)), recording=True)
    headers = {
        "Authorization": "Bearer bearer-4711",
        "Cookie": "vmware_soap_session=cookie-4711",
        "content-type": kind,
    }
    with httpx2.Client(transport=tape.filling(inner), base_url="https://127.0.0.1:4711") as client:
        assert client.post("/sdk", content=data, headers=headers).content == data
    tape.finish()
    text = (tmp_path / "t.yaml").read_text()
    assert [word for word in SECRET_WORDS if word in text] == []
    assert leaks(text) == []
    assert "https://peer.test/sdk" in text
    assert HIDDEN in text or "U0NSVUJCRUQ=" in text


@pytest.mark.parametrize(
    "planted",
    [
        "  headers:\n    Authorization: Basic dTpw",
        "set-cookie: a=b",
        "<password>hunter2</password>",
        "vmware-api-session-id: x",
        "Bearer abcdefgh1234",
        "session[52a1]5d",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2ln",
        "-----BEGIN RSA PRIVATE KEY-----",
        "<propertyMapping><key>k</key><value>v</value></propertyMapping>",
    ],
)
def test_a_planted_secret_is_found(planted: str) -> None:
    assert leaks(f"interactions:\n{planted}\n")


def test_a_secret_in_use_is_never_written(tmp_path: Path) -> None:
    class Blind(Scrub):
        def text(self, data: bytes, path: str) -> bytes:
            return data

    tape = Tape(tmp_path / "t.yaml", Blind({}, ("hunter2",)), recording=True)
    with httpx2.Client(
        transport=tape.filling(httpx2.MockTransport(lambda _: httpx2.Response(200, content=b"hunter2")))
    ) as client:
        client.get("https://peer.test/x")
    with pytest.raises(AssertionError, match="1 secrets of this run"):
        tape.finish()
    assert not (tmp_path / "t.yaml").exists()


def played(tmp_path: Path) -> Tape:
    tape = Tape(tmp_path / "t.yaml", Scrub({}), recording=True)
    count = iter(range(9))
    with httpx2.Client(
        transport=tape.filling(httpx2.MockTransport(lambda _: httpx2.Response(200, json=next(count))))
    ) as client:
        for body in (b"one", b"one", b"two"):
            client.post("https://peer.test/sdk", content=body)
    tape.finish()
    return Tape(tmp_path / "t.yaml", Scrub({}), recording=False)


def silent(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError("went live")


def test_answers_come_by_body_and_in_order_and_never_from_the_network(tmp_path: Path) -> None:
    tape = played(tmp_path)
    with httpx2.Client(
        transport=tape.filling(httpx2.MockTransport(silent)), base_url="https://peer.test"
    ) as client:
        assert [client.post("/sdk", content=body).json() for body in (b"two", b"one", b"one")] == [2, 0, 1]
        tape.finish()
        with pytest.raises(NotOnTape, match="POST /sdk is not on the cassette"):
            client.post("/sdk", content=b"one")
        with pytest.raises(NotOnTape):
            client.post("/sdk", content=b"three")


def test_a_cassette_that_is_not_played_to_its_end_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="0 of 3 answers"):
        played(tmp_path).finish()


@pytest.mark.parametrize(
    "path", ["/nfc/x/disk-0.vmdk", "/api/v1/pods?watch=true", "/api/v1/namespaces/n/pods/p/log?follow=true"]
)
def test_uploads_watches_and_followed_logs_stay_out(path: str, tmp_path: Path) -> None:
    tape = Tape(tmp_path / "t.yaml", Scrub({}), recording=True)
    with (
        httpx2.Client(
            transport=tape.filling(httpx2.MockTransport(silent)), base_url="https://peer.test"
        ) as client,
        pytest.raises(NotOnTape, match="stay out"),
    ):
        client.get(path)


def test_the_results_hold_no_secret() -> None:
    assert leaks(json.dumps(table.results())) == []
