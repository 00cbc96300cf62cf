"""One server is away, in every way that it may be: a plan asks it a few times, all threads together, says so, and
ends in time. The others are read.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from clocks import SharedClock

import bfinfra
from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.plan import Plan
from bfinfra.model.surveying import SurveyProgress
from bfinfra.sandbox import SMALL_WORLD, Running

MOST_REFUSED = 6  # requests to a server that refuses: one for each thing that is read there
MOST = 40  # requests to the server that is away, logins included
LASTS = 90.0  # seconds: the patience of RetryPolicy
SITE = """\
site: example
vcenter:
  server: vc.small.test
  username: admin@small.test
  password: {env: VCENTER_PASSWORD}
  trust: {ca_file: ca.pem}
vm_class: {big: {cpus: 2, memory: 4GiB}}
resource_pool: {gpu: {cluster: compute}}
supervisor_namespace:
  team-a: {cluster: compute, vm_classes: [big], storage: {gold: 1TiB}}
tanzu_cluster:
  cluster-01:
    namespace: team-a
    api: run.tanzu.vmware.com/v1alpha3
    version: v1.26.5
    control_plane: {count: 1, vm_class: big, storage_class: gold}
    workers: {pool-1: {count: 1, vm_class: big, storage_class: gold}}
kubernetes_cluster:
  other: {kubeconfig: {file: other.kubeconfig}}
namespace:
  training: {cluster: other}
  serving: {cluster: other}
manifests:
  charted:
    cluster: other
    namespace: training
    chart: {oci: "oci://registry.test/charts/demo", digest: "sha256:%s"}
""" % ("ab" * 32)


SERVERS: dict[str, Callable[[httpx2.URL], bool]] = {
    "vCenter": lambda url: url.host == "vc.small.test",
    "vCenter SOAP": lambda url: url.host == "vc.small.test" and url.path.startswith("/sdk"),
    "vCenter REST": lambda url: url.host == "vc.small.test" and url.path.startswith(("/api", "/rest")),
    "supervisor": lambda url: url.host == "10.1.0.1",
    "supervisor API": lambda url: url.host == "10.1.0.1" and url.path != "/wcp/login",
    "cluster": lambda url: url.host == "10.3.0.1",
    "registry": lambda url: url.host == "registry.test",
}
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body></body></html>"
REFUSALS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "401": (401, {}, b""),
    "401 Bearer": (401, {"www-authenticate": 'Bearer realm="https://sso.test/token"'}, b""),
    "403": (403, {}, b""),
    "407": (407, {"proxy-authenticate": "Basic"}, b""),
    "404": (404, {}, b""),
    "a web page": (200, {"content-type": "text/html"}, PAGE),
    "a login page": (302, {"location": "https://sso.test/login"}, b""),
}
WORDS: dict[str, str] = {
    "401": "accept|401|login",
    "401 Bearer": "accept|401|login",
    "403": "accept|403|right",
    "407": "407.*proxy|proxy.*407",
    "404": "404",
    "a web page": "web page",
    "a login page": r"redirect.*https://sso\.test/login",
}
"""What is said of a refusal."""
REGISTRYS = {
    "401": "wants another account",
    "401 Bearer": "the sandbox has no such address",  # a registry's tokens come from elsewhere
    "403": "wants another account",
    "404": "no such chart",
    "a web page": "other content than sha256",
    "a login page": "can't be pulled: the sandbox has no such address",  # a registry may lead elsewhere
}
ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "503": (503, {}),
    "500": (500, {}),
    "429": (429, {}),
    "503, in 20 s": (503, {"retry-after": "20"}),
    "429, in 20 s": (429, {"retry-after": "20"}),
}


@dataclass
class Told:
    """What somebody who looks at each moment sees: server → when it was first said that it is waited for, and
    the words.
    """

    clock: SharedClock
    progress: SurveyProgress | None = None
    first: dict[str, tuple[float, str]] = field(default_factory=dict)
    begun: threading.Event = field(default_factory=threading.Event)

    def shows(self, progress: SurveyProgress) -> AbstractContextManager[None]:
        self.progress = progress
        self.begun.set()
        self.clock.turns = self.look
        return nullcontext()

    def look(self) -> None:
        for server, why in (self.progress.waiting() if self.progress else {}).items():
            self.first.setdefault(server, (self.clock.now, why))


class Away:
    """Middleware: the requests to one server are counted, and answered so until some time; the others go on.

    Silence takes as long as the timeout of a read.
    """

    def __init__(self, server: str, answer: str, told: Told, until: float = float("inf")) -> None:
        self.which, self.answer, self.told, self.until = SERVERS[server], answer, told, until
        self.clock = told.clock
        self.asked: list[float] = []
        """When each request to the server was sent while it was away."""
        self.others: list[tuple[str, float]] = []
        """The host of each request that was answered well, and when."""
        self.logins: list[str] = []
        """Those of the requests that carried a password."""

    def __call__(self, inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        return _Between(self, inner)

    def answered(self) -> httpx2.Response:
        assert self.told.begun.wait(60)  # logins begin before the survey does
        self.asked.append(self.clock.now)
        if self.answer == "refused":
            raise httpx2.ConnectError("Connection refused")
        if self.answer == "silence":
            self.clock.sleep(60)
            raise httpx2.ReadTimeout("timed out")
        if self.answer in REFUSALS:
            status, headers, body = REFUSALS[self.answer]
            return httpx2.Response(status, headers=headers, content=body)
        status, headers = ANSWERS[self.answer]
        return httpx2.Response(status, headers=headers)


class _Between(httpx2.BaseTransport):
    def __init__(self, away: Away, inner: httpx2.BaseTransport) -> None:
        self.away, self.inner = away, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.away.which(request.url) and self.away.clock.now < self.away.until:
            if (
                request.headers.get("authorization", "").startswith("Basic")
                or b"<userName>" in request.read()
            ):
                self.away.logins.append(str(request.url))
            return self.away.answered()
        answer = self.inner.handle_request(request)
        self.away.others.append((request.url.host, self.away.clock.now))
        return answer

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SharedClock:
    return SharedClock(monkeypatch)


def planned(tmp_path: Path, sandbox: Running, away: Away, told: Told) -> Plan:
    (tmp_path / "site.yaml").write_text(SITE)
    context = bfinfra.RunContext(
        sandbox=sandbox,
        middleware=(away,),
        retry=RetryPolicy(lasts=LASTS, sleep=away.clock.sleep),
        surveying=told.shows,
    )
    return bfinfra.plan(bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox), context=context)


REFUSING = ["vCenter SOAP", "vCenter REST", "supervisor", "supervisor API", "cluster", "registry"]
NAMES = {"supervisor": "10.1.0.1:443", "cluster": "10.3.0.1:6443", "registry": "registry.test:443"}


@pytest.mark.thorough(
    "vCenter-503", "vCenter-429, in 20 s", "vCenter-silence", "vCenter-refused", "cluster-500", "registry-429"
)
@pytest.mark.parametrize("answer", [*ANSWERS, "silence", "refused"])
@pytest.mark.parametrize("server", [each for each in SERVERS if each != "supervisor API"])
def test_a_server_that_is_away_is_asked_few_times_and_named(
    server: str, answer: str, tmp_path: Path, sandbox: Running, clock: SharedClock
) -> None:
    told = Told(clock)
    away = Away(server, answer, told)
    found = planned(tmp_path, sandbox, away, told)
    why = " ".join(found.unreadable.values()) or str(found)
    assert 0 < len(away.asked) <= MOST
    assert clock.now <= LASTS + 75  # the last request may be silent for 60 s
    assert ("timed out" if answer == "silence" else answer.partition(",")[0]) in why
    if clock.now > 5 and answer != "refused":  # who never answered is waited for 3 s
        name = NAMES.get(server, "vc.small.test:443")
        at, words = told.first[name]
        well = [when for host, when in away.others if host == name.partition(":")[0] and when < at]
        # by the clock that the test turns, from the first request that failed, or its last answer to another
        assert at - max(min(away.asked), *well, 0.0) <= 5
        assert ("not answered" if answer == "silence" else answer.partition(",")[0]) in words
    if "," in answer:
        assert all(later - sooner >= 20 for sooner, later in pairwise(sorted({*away.asked})))


@pytest.mark.parametrize(("answer", "until"), [("503", 40), ("429, in 20 s", 30), ("refused", 2)])
def test_where_the_server_answers_again_all_go_on(
    answer: str, until: float, tmp_path: Path, sandbox: Running, clock: SharedClock
) -> None:
    told = Told(clock)
    away = Away("vCenter", answer, told, until)
    assert not planned(tmp_path, sandbox, away, told).unreadable
    assert len(away.asked) <= 12


@pytest.mark.thorough(
    "vCenter SOAP-401", "vCenter REST-403", "supervisor-401", "cluster-401 Bearer", "registry-a login page"
)
@pytest.mark.parametrize("answer", REFUSALS)
@pytest.mark.parametrize("server", REFUSING)
def test_a_refusal_is_no_outage(
    server: str, answer: str, tmp_path: Path, sandbox: Running, clock: SharedClock
) -> None:
    told = Told(clock)
    away = Away(server, answer, told)
    found = planned(tmp_path, sandbox, away, told)
    why = " ".join({*found.unreadable.values(), *map(str, found.problems)})[:2000]
    assert 0 < len(away.asked) <= MOST_REFUSED, why
    assert clock.now == 0, why  # nobody waited
    assert told.first == {}
    assert re.search(REGISTRYS.get(answer, WORDS[answer]) if server == "registry" else WORDS[answer], why), (
        why
    )
    assert len({*away.logins}) == len(away.logins) <= 2  # the REST API has an old and a new login


def test_a_supervisor_that_refuses_the_password_fails_the_plan(
    tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worlds, "embedded", lambda *_, **__: sandbox)
    monkeypatch.setenv("BFINFRA_VCENTER_PASSWORD", sandbox.env["VCENTER_PASSWORD"])
    monkeypatch.chdir(tmp_path)
    vcenter_only = SITE.partition("kubernetes_cluster:")[0]
    vcenter_only = vcenter_only.replace("v1.26.5", "v1.22.9")  # one that the world has
    Path("site.yaml").write_text(vcenter_only.replace("  password: {env: VCENTER_PASSWORD}\n", ""))
    assert main(["plan", "--detailed-exitcode", "--world", str(SMALL_WORLD)]) == 2  # 5 to create
    monkeypatch.setenv("KUBECTL_VSPHERE_PASSWORD", "outdated")
    capsys.readouterr()
    for more in ([], ["--detailed-exitcode"]):
        assert main(["plan", *more, "--world", str(SMALL_WORLD)]) == 1
        said = "".join(capsys.readouterr())
        assert "log in to 10.1.0.1" in said
        assert "the account or its password is not accepted" in said
        assert "check vcenter.username and vcenter.password" in said
        assert "doesn't show" not in said
        assert "outdated" not in said
