"""Whoever is sent elsewhere doesn't go, whatever kind of server says so: credentials and bodies stay with
whom they were meant for.
"""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace

import httpx2
import pytest
import yaml
from trust.authority import Authority
from trust.listening import listening

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.kubernetes.login import enter
from bfinfra.backends.transport import REDIRECTS, Redirected, Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.upload import Upload
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources
from bfinfra.model.trust import Trust

ENV = {"PASSWORD": "a password that nobody else may see"}


@pytest.fixture
def two(tmp_path):
    """A server that sends everybody to the other one, and that one."""
    shown = Authority(tmp_path).leaf()
    with listening(shown.file) as honest, listening(shown.file) as thief:
        honest.answers["*"] = (307, b"", {"location": f"{thief.url}/elsewhere?token=abc"})
        yield SimpleNamespace(ca=shown.ca, honest=honest, thief=thief)


@pytest.fixture
def vcenter(two):
    transport = Transport()
    made = VCenter(_settings(two), transport)
    yield made
    made.close()
    transport.close()


def _settings(two):
    password = Secret("env", "PASSWORD", Sources(env=ENV))
    return VCenterSettings(
        server=f"127.0.0.1:{two.honest.port}", username="admin", password=password, trust=Trust(ca_pem=two.ca)
    )


def _kubeconfig(two):
    return yaml.safe_dump(
        {
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": two.honest.url, "certificate-authority-data": _base64(two.ca)},
                }
            ],
            "users": [{"name": "u", "user": {"token": "a-token"}}],
        }
    )


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def _soap(vcenter, two):
    vcenter.session.content()


def _rest(vcenter, two):
    vcenter.rest.get("/api/vcenter/cluster")


def _authorities(vcenter, two):
    vcenter.authorities()


def _upload(vcenter, two):
    item = SimpleNamespace(path="disk.vmdk", create=True)
    upload = Upload(
        vcenter.transport,
        lambda _: Trust(ca_pem=two.ca),
        SimpleNamespace(percent=0, check=lambda: None),
        lambda *_: None,
    )
    upload.run(
        [item],
        [httpx2.URL(f"{two.honest.url}/nfc/disk.vmdk")],
        {"disk.vmdk": 4},
        lambda _: io.BytesIO(b"data"),
    )


def _supervisor(vcenter, two):
    settings = vcenter.settings.model_copy(update={"supervisor_trust": Trust(ca_pem=two.ca)})
    enter(
        vcenter.transport,
        settings,
        lambda: "",
        Endpoint(server=f"127.0.0.1:{two.honest.port}", namespace="n"),
    )


def _cluster(vcenter, two):
    kubeconfig = Secret("env", "KUBECONFIG", Sources(env={"KUBECONFIG": _kubeconfig(two)}))
    Clusters(vcenter.transport, None).at(Endpoint(kubeconfig=kubeconfig)).list("v1", "Secret", "default")


@pytest.mark.parametrize(
    "ask",
    [_soap, _rest, _authorities, _upload, _supervisor, _cluster],
    ids=lambda ask: ask.__name__.strip("_"),
)
def test_no_server_sends_bfinfra_elsewhere(ask, vcenter, two):
    with pytest.raises(Redirected) as raised:
        ask(vcenter, two)
    assert f"127.0.0.1:{two.thief.port}/elsewhere" in str(raised.value)
    assert "token=abc" not in str(raised.value)
    assert len(two.honest.asked) == 1
    assert two.thief.asked == []


@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_every_redirect_of_every_method_is_refused(status, method, two):
    two.honest.answers["*"] = (status, b"", {"location": two.thief.url})
    transport = Transport()
    with pytest.raises(Redirected, match=str(two.thief.port)):
        transport.client(two.honest.url, Trust(ca_pem=two.ca)).request(
            method, "/x", headers={"authorization": "Basic x"}, content=b"y"
        )
    assert two.thief.asked == []
    transport.close()


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("https://user:pa55@evil.test/p?session=s#f", "https://evil.test/p"),
        ("//user:pa55@evil.test/p", "//evil.test/p"),
        ("/\x1b[2Jx\u202e", "/[2Jx"),
    ],
)
def test_the_place_is_shown_without_accounts_queries_and_escapes(place, shown):
    error = Redirected("GET /x", place, "vc.test:443")
    assert error.place == shown
    assert "pa55" not in str(error)


def test_an_answer_with_a_place_that_is_no_redirect_passes(two):
    two.honest.answers["*"] = (201, b"{}", {"location": "/made/1"})
    transport = Transport()
    assert transport.client(two.honest.url, Trust(ca_pem=two.ca)).post("/x").status_code == 201
    transport.close()
