"""The login, against a supervisor that answers as facts about /wcp/login say."""

from __future__ import annotations

import base64
import json
import time

import httpx2
import pytest
import yaml

from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.kubernetes.access import expiry
from bfinfra.backends.transport import Transport
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Denied, Malformed, Missing
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources


def jwt(seconds: float) -> str:
    claims = (
        base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode().rstrip("=")
    )
    return f"e30.{claims}.x"


class Supervisor(httpx2.BaseTransport):
    """Answers logins and GET /version; remembers what it was asked."""

    def __init__(self, authority: str) -> None:
        self.authority = authority
        self.logins: list[dict] = []
        self.asked: list[tuple[str, str]] = []
        self.refuse: set[str] = set()
        self.life = 3600.0
        self.answer: dict | None = None

    def handle_request(self, request):
        if request.url.path == "/wcp/login":
            return self._login(request)
        token = request.headers.get("authorization", "")
        self.asked.append((str(request.url), token))
        if token in self.refuse:
            return httpx2.Response(
                401, json={"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}
            )
        return httpx2.Response(200, json={"gitVersion": "v1.20.2+vmware.1"})

    def _login(self, request):
        if (
            base64.b64decode(request.headers["authorization"].removeprefix("Basic "))
            != b"me@vsphere.local:s3:cret"
        ):
            return httpx2.Response(401)
        body = json.loads(request.read())
        self.logins.append(body)
        guest = (
            {
                "guest_cluster_server": "10.0.0.9",
                "guest_cluster_ca": base64.b64encode(self.authority.encode()).decode(),
            }
            if body
            else {}
        )
        return httpx2.Response(
            200, json=self.answer or {"session_id": f"{jwt(self.life)}{len(self.logins)}", **guest}
        )


@pytest.fixture
def supervisor(pki):
    return Supervisor(pki.ca_pem)


def clusters_of(supervisor, pki, password="s3:cret"):
    transport = Transport(read_only=True, middleware=[lambda _: supervisor])
    secret = Secret("env", "PW", Sources(env={"PW": password}))
    settings = VCenterSettings(server="vc", username="me@vsphere.local", password=secret)
    return Clusters(transport, settings, lambda: pki.ca_pem)


def test_a_supervisor_is_entered_with_the_vcenter_account_and_asked_on_6443(supervisor, pki):
    cluster = clusters_of(supervisor, pki).at(Endpoint(server="172.24.206.1", namespace="cnasg"))
    assert cluster.version() == "v1.20.2+vmware.1"
    assert supervisor.logins == [{}]
    assert supervisor.asked[0][0] == "https://172.24.206.1:6443/version"


def test_a_guest_is_entered_through_its_supervisor_at_the_address_that_it_names(supervisor, pki):
    cluster = clusters_of(supervisor, pki).at(
        Endpoint(server="172.24.206.1", namespace="cnasg", guest="cluster-01")
    )
    cluster.version()
    assert supervisor.logins == [{"guest_cluster_name": "cluster-01", "guest_cluster_namespace": "cnasg"}]
    assert supervisor.asked[0][0] == "https://10.0.0.9:6443/version"


def test_one_login_serves_many_requests_and_a_spent_token_is_renewed(supervisor, pki):
    cluster = clusters_of(supervisor, pki).at(Endpoint(server="sv"))
    for _ in range(3):
        cluster.version()
    assert len(supervisor.logins) == 1
    supervisor.life = 30  # less than the margin: spent at once
    cluster.close()
    cluster.version()
    cluster.version()
    assert len(supervisor.logins) == 3


def test_a_token_that_ended_early_is_renewed_once(supervisor, pki):
    cluster = clusters_of(supervisor, pki).at(Endpoint(server="sv"))
    cluster.version()
    supervisor.refuse.add(supervisor.asked[0][1])
    assert cluster.version() == "v1.20.2+vmware.1"
    assert len(supervisor.logins) == 2


def test_a_wrong_password_is_denied_and_not_shown(supervisor, pki):
    with pytest.raises(Denied, match="not accepted") as failed:
        clusters_of(supervisor, pki, "hunter2").at(Endpoint(server="sv")).version()
    assert "hunter2" not in str(failed.value)


REFUSED = httpx2.Response(403, json={"kind": "Status", "message": "locked until noon"})
NO_LOGIN = httpx2.Response(404)
PAGE = httpx2.Response(
    200, headers={"content-type": "text/html"}, text="<html><title>Please sign in</title></html>"
)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (REFUSED, Denied, "locked until noon"),
        (NO_LOGIN, Malformed, "no such login"),
        (PAGE, Malformed, "a web page: Please sign in"),
    ],
)
def test_a_refused_login_is_tried_once_and_is_no_missing_list(supervisor, pki, answer, error, words):
    tried = []
    supervisor._login = lambda request: tried.append(request) or answer
    cluster = clusters_of(supervisor, pki).at(Endpoint(server="sv"))
    for _ in range(3):
        with pytest.raises(error, match=words) as failed:
            cluster.list("v1", "Secret")
        assert type(failed.value) is error  # readers go without what is Missing or Forbidden
    assert len(tried) == 1


def test_a_guest_that_the_supervisor_does_not_know_is_missing(supervisor, pki):
    supervisor.answer = {"session_id": "x", "guest_cluster_server": "", "guest_cluster_ca": ""}
    with pytest.raises(Missing, match="no running cluster"):
        clusters_of(supervisor, pki).at(Endpoint(server="sv", namespace="n", guest="g")).version()


@pytest.mark.parametrize("server", ["evil.example/path", "a@b", "h:1:2/x", 7])
def test_a_guest_address_that_is_no_host_is_malformed(supervisor, pki, server):
    supervisor.answer = {"session_id": "x", "guest_cluster_server": server, "guest_cluster_ca": "eA=="}
    with pytest.raises(Malformed):
        clusters_of(supervisor, pki).at(Endpoint(server="sv", namespace="n", guest="g")).version()


def test_a_kubeconfig_names_contexts_as_kubectl_vsphere_does(supervisor, pki):
    clusters = clusters_of(supervisor, pki)
    guest = yaml.safe_load(clusters.kubeconfig(Endpoint(server="sv", namespace="cnasg", guest="cluster-01")))
    assert guest["current-context"] == "cluster-01"
    assert guest["users"][0]["name"] == "wcp:10.0.0.9:me@vsphere.local"
    space = yaml.safe_load(clusters.kubeconfig(Endpoint(server="sv", namespace="cnasg")))
    assert (space["current-context"], space["contexts"][0]["context"]["namespace"]) == ("cnasg", "cnasg")


def test_what_is_no_token_with_an_end_has_none():
    assert expiry("opaque") is None
    assert expiry("a.!!.c") is None
    assert expiry(jwt(100)) == pytest.approx(time.time() + 100, abs=5)
