"""A Kubernetes cluster of a trial's own: etcd, kube-apiserver and the controller-manager, which it may restart."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from peers.found import Peers
from rights.given import Kube

SCRIPT = Path(__file__).parents[1] / "peers/kube.sh"
PATIENCE = 180  # seconds, on a machine that does much else
PART = "kube-apiserver"
SLOW = ("/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
"""What kube-apiserver and its controllers delete after the answer to who deletes it."""


@dataclass
class Cluster:
    """`folder`: its data, kubeconfigs and keys, as kube.sh lays them out."""

    folder: Path
    bin: Path

    @property
    def config(self) -> dict[str, Any]:
        """The administrator's kubeconfig, which names no other file."""
        found: dict[str, Any] = json.loads((self.folder / "token.kubeconfig").read_text())
        place = found["clusters"][0]["cluster"]
        authority = Path(place.pop("certificate-authority")).read_bytes()
        place["certificate-authority-data"] = base64.b64encode(authority).decode()
        return found

    @property
    def address(self) -> tuple[str, int]:
        """Where kube-apiserver listens."""
        server = self.config["clusters"][0]["cluster"]["server"]
        host, _, port = str(server).removeprefix("https://").rpartition(":")
        return host, int(port)

    def kube(self) -> Kube:
        """Its administrator."""
        return Kube(self.config, self.address)

    def kubectl(self, *words: str) -> str:
        """What kubectl prints. Raises CalledProcessError."""
        command = [str(self.bin / "kubectl"), "--kubeconfig", str(self.folder / "token.kubeconfig"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def settle(self) -> None:
        """Wait until nothing is being deleted any more. Raises AssertionError."""
        kube = self.kube()
        _until(lambda: not any(_going(kube.call("GET", path)) for path in SLOW), "the end of what is deleted")

    def restart(self) -> None:
        """kube-apiserver is killed and started again: what it remembered of earlier changes is gone."""
        file = self.folder / "pid" / PART
        pid = int(file.read_text().split()[0])
        command = [word for word in Path(f"/proc/{pid}/cmdline").read_text().split("\0") if word]
        os.kill(pid, signal.SIGKILL)
        _until(lambda: not _runs(pid), "its end")
        _until(lambda: self._start(command, file), "its readiness")

    def _start(self, command: list[str], file: Path) -> bool:
        """Whether it is ready before it ends: a connection to its port from the same port, which Linux may draw,
        keeps that port for a moment.
        """
        with (self.folder / f"log/{PART}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        file.write_text(f"{process.pid} {stat.rpartition(') ')[2].split()[19]}\n")
        _until(lambda: self._ready() or process.poll() is not None, "its readiness")
        return process.poll() is None

    def compact(self) -> None:
        """etcd forgets every version but the present one; 400: it has none to forget."""
        url = (self.folder / "etcd.url").read_text().strip()
        revision = _etcd(f"{url}/v3/kv/range", {"key": base64.b64encode(b"/none").decode()})["header"][
            "revision"
        ]
        try:
            _etcd(f"{url}/v3/kv/compaction", {"revision": revision, "physical": True})
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.BAD_REQUEST:
                raise

    def renew_certificate(self) -> None:
        """Of kube-apiserver, by the same authority; it reads the file again by itself."""
        pki = self.folder / "pki"
        command = [
            *("openssl", "x509", "-req", "-in", "apiserver.csr", "-CA", "ca.crt", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-days", "30", "-extfile", "/dev/stdin", "-out", "apiserver.new"),
        ]
        names = "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,DNS:kubernetes,IP:127.0.0.1\n"
        subprocess.run(command, cwd=pki, input=names.encode(), check=True, capture_output=True)
        (pki / "apiserver.new").replace(pki / "apiserver.crt")

    def _ready(self) -> bool:
        try:
            return self.kube().text("/readyz") == "ok"
        except (OSError, urllib.error.URLError):
            return False


@contextmanager
def own_cluster(peers: Peers, folder: Path) -> Iterator[Cluster]:
    """Started, and thrown away afterwards."""
    env = {**os.environ, "KUBE_DIR": str(folder / "kube"), "KUBE_BIN": str(peers.bin), "KUBE_WITH": "kcm"}
    try:
        subprocess.run([SCRIPT, "up"], env=env, check=True, stdout=subprocess.DEVNULL)
        yield Cluster(folder / "kube", peers.bin)
    finally:
        subprocess.run([SCRIPT, "down"], env=env, check=False)


def _etcd(url: str, body: dict[str, object]) -> Any:
    with urllib.request.urlopen(url, json.dumps(body).encode(), PATIENCE) as answer:
        return json.load(answer)


def _going(listed: Any) -> bool:
    return any("deletionTimestamp" in each["metadata"] for each in listed["items"])


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def _until(holds: Any, what: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < limit, f"kube-apiserver: waited in vain for {what}"
        time.sleep(0.05)
