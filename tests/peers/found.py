"""The real peers that `script/peers up` started: where they are, and their own clients as commands."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

BINARIES = ("vcsim", "govc", "kubectl", "helm")
NAMES = ("KUBECONFIG", "BFINFRA_VCSIM_URL", "BFINFRA_VCSIM_PASSWORD_FILE", "BFINFRA_PEERS_BIN")
USER = "administrator@vsphere.local"


class NotUp(Exception):
    """The peers aren't there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the real peers are not up ({why}); start them with: script/peers up")


@dataclass(frozen=True)
class Peers:
    """`vcsim`: host:port of the one that everybody shares; `bin`: the folder of vcsim, govc, kubectl
    and helm.
    """

    bin: Path
    kubeconfig: Path
    vcsim: str
    password: str = field(repr=False)

    def govc(self, *words: str, server: str = "", user: str = USER, password: str = "") -> str:
        """What govc prints; the server's certificate is not checked, as these are throw-away servers on
        loopback.
        """
        env = {
            "GOVC_URL": f"https://{server or self.vcsim}/sdk",
            "GOVC_USERNAME": user,
            "GOVC_PASSWORD": password or self.password,
            "GOVC_INSECURE": "1",
            "GOVC_PERSIST_SESSION": "false",
        }
        return run([str(self.bin / "govc"), *words], env)

    def kubectl(self, *words: str, given: str = "", kubeconfig: Path | None = None) -> str:
        """What kubectl prints; `given` goes to its standard input."""
        return run(
            [str(self.bin / "kubectl"), "--kubeconfig", str(kubeconfig or self.kubeconfig), *words], {}, given
        )

    def helm(self, *words: str) -> str:
        """What helm prints, on the cluster of these peers."""
        return run([str(self.bin / "helm"), "--kubeconfig", str(self.kubeconfig), *words], {})

    def established(self, definition: str) -> None:
        """Returns once a definition is served. `kubectl wait` fails where the API server does not yet say
        so.
        """
        end = time.monotonic() + 20
        while True:
            status = json.loads(self.kubectl("get", f"crd/{definition}", "-o", "json")).get("status") or {}
            if any(
                (each["type"], each["status"]) == ("Established", "True")
                for each in status.get("conditions") or ()
            ):
                return
            assert time.monotonic() < end, f"{definition}: {status}"
            time.sleep(0.1)


def run(command: list[str], env: dict[str, str], given: str = "") -> str:
    """Standard output; AssertionError with the command's output where it fails."""
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env},
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def find() -> Peers:
    """The peers of the env file that script/peers writes, or of the same variables where BFINFRA_PEERS_BIN is
    set; NotUp.

    A KUBECONFIG alone is not taken: it is most likely somebody's own cluster.
    """
    given = _variables()
    if missing := [name for name in NAMES if not given.get(name)]:
        raise NotUp(f"{', '.join(missing)} not set")
    folder, kubeconfig, password = (
        Path(given[name]) for name in ("BFINFRA_PEERS_BIN", "KUBECONFIG", "BFINFRA_VCSIM_PASSWORD_FILE")
    )
    if absent := [
        str(path)
        for path in (*(folder / name for name in BINARIES), kubeconfig, password)
        if not path.exists()
    ]:
        raise NotUp(f"there is no {', '.join(absent)}")
    vcsim = str(urlsplit(given["BFINFRA_VCSIM_URL"]).netloc.rpartition("@")[2])
    api = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]).netloc
    for what, address in {"vcsim": vcsim, "kube-apiserver": api}.items():
        _knock(what, address)
    return Peers(folder, kubeconfig, vcsim, password.read_text().strip())


def _variables() -> dict[str, str]:
    if os.environ.get("BFINFRA_PEERS_BIN"):
        return dict(os.environ)
    file = Path(os.environ.get("PEERS_DIR") or Path.home() / ".cache/bfinfra-peers") / "env"
    if not file.exists():
        raise NotUp(f"there is no {file}")
    return dict(re.findall(r"^export (\w+)=(.*)$", file.read_text(), re.MULTILINE))


def _knock(what: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError as error:
        raise NotUp(f"{what} at {address}: {error.strerror or error}") from None
