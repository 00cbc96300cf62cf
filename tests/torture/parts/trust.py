"""Only the right server gets anything.

Each type of server certificate is combined with each way to trust, with old versions of TLS, and with servers
that redirect the client. Where it is installed, `openssl s_server` is the server; it shares only the OpenSSL
library with bfinfra. The requests that an untrusted server received are counted, and must be none.
"""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

from torture.counting import Count, Effort
from trust.authority import Authority, Shown
from trust.listening import listening
from trust.matrix import SERVERS, Case, cases

from bfinfra.backends.transport import REDIRECTS, Redirected, Transport
from bfinfra.model.errors import Untrusted
from bfinfra.model.trust import Trust


def counts(effort: Effort) -> Iterator[Count]:
    if effort.wants("a server's certificate beside a way to trust"):
        yield _matrix(effort)
    if shutil.which("openssl") and effort.wants("the same with openssl s_server"):
        yield _openssl(effort)
    if effort.wants("TLS older than 1.2 is refused"):
        yield _old(effort)
    if effort.wants("a redirect leads nowhere"):
        yield _redirects(effort)


def _matrix(effort: Effort) -> Count:
    count = Count(
        "a server's certificate beside a way to trust", figures={"requests that an untrusted server got": 0}
    )
    for case in cases():
        shown, trust = _made(case, effort.folder)
        with listening(shown.file) as server, count.trial(case.name):
            _holds(case, server.url, trust)
            if case.says:
                count.add("requests that an untrusted server got", len(server.asked))
                assert server.asked == []
    return count


def _openssl(effort: Effort) -> Count:
    count = Count("the same with openssl s_server")
    for case in effort.some(list(cases()), 6):
        shown, trust = _made(case, effort.folder)
        with count.trial(case.name), _s_server(shown.file) as port:
            _holds(case, f"https://127.0.0.1:{port}", trust)
    return count


def _old(effort: Effort) -> Count:
    count = Count("TLS older than 1.2 is refused")
    shown = Authority(effort.folder).leaf()
    for newest in ("TLSv1", "TLSv1_1"):
        for trust in (Trust(ca_pem=shown.ca), Trust(sha256=shown.sha256)):
            with (
                listening(shown.file, newest=ssl.TLSVersion[newest]) as server,
                count.trial(f"{newest}, {trust}"),
            ):
                _refused(server.url, trust, "TLS 1.2")
                assert server.asked == []
    return count


def _redirects(effort: Effort) -> Count:
    count = Count("a redirect leads nowhere", figures={"requests that the other server got": 0})
    shown = Authority(effort.folder).leaf()
    with (
        listening(shown.file) as honest,
        listening(shown.file) as thief,
        contextlib.closing(Transport()) as transport,
    ):
        client = transport.client(
            honest.url, Trust(ca_pem=shown.ca), headers={"authorization": "Basic c2VjcmV0"}
        )
        for status in REDIRECTS:
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                honest.answers["*"] = (status, b"", {"location": f"{thief.url}/x"})
                with count.trial(f"{method} {status}"):
                    try:
                        client.request(method, "/x", content=b"secret")
                    except Redirected as error:
                        assert str(thief.port) in str(error)
                    else:
                        raise AssertionError("it was taken for an answer")
        count.add("requests that the other server got", len(thief.asked))
    return count


def _made(case: Case, folder: Path) -> tuple[Shown, Trust]:
    shown = SERVERS[case.server](Authority(folder))
    return shown, case.trust(shown, Authority(folder, "another authority"))


def _holds(case: Case, url: str, trust: Trust) -> None:
    if case.says:
        _refused(url, trust, case.says)
        return
    with contextlib.closing(Transport()) as transport:
        assert transport.client(url, trust).get("/").status_code == 200


def _refused(url: str, trust: Trust, says: str) -> None:
    with contextlib.closing(Transport()) as transport:
        try:
            transport.client(url, trust).get("/", headers={"authorization": "Basic c2VjcmV0"})
        except Untrusted as error:
            assert says in str(error), error
        else:
            raise AssertionError("it was trusted")


@contextlib.contextmanager
def _s_server(file: Path) -> Iterator[int]:
    argv = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", str(file), "-key", str(file), "-www"]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("ACCEPT"))
            yield int(line.rpartition(":")[2])
        finally:
            process.kill()
