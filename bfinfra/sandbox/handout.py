"""The files for other clients of the sandbox: variables for a shell, and a kubeconfig."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bfinfra.sandbox import state as folder
from bfinfra.sandbox.world import World

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRETS = ("GOVC_PASSWORD", "KUBECTL_VSPHERE_PASSWORD")


@dataclass(frozen=True)
class Api:
    """A Kubernetes API: "host:port" as the world knows it, and its administrator's token."""

    address: str
    token: str = field(repr=False)


def variables(
    world: World, ca_file: Path, kubeconfig: Path, ports: Mapping[str, str], supervisors: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables without secrets. `ports`: address → where it listens; `supervisors`: cluster's
    name → address of its login.
    """
    here = ports[f"{world.vcenter.host}:{world.vcenter.port}"]
    found = {
        "GOVC_URL": f"https://{here}/sdk",
        "GOVC_USERNAME": _administrator(world)[0],
        "GOVC_TLS_CA_CERTS": str(ca_file),
        "GOVC_DATACENTER": world.datacenter,
        "KUBECONFIG": str(kubeconfig),
    }
    return found | {
        f"SUPERVISOR_{re.sub('[^A-Z0-9]', '_', name.upper())}": ports[address]
        for name, address in sorted(supervisors.items())
    }


def secrets(world: World) -> dict[str, str]:
    """Return the variables that only the `env` file has: passwords for the same clients, and the values that
    a site's `{env: …}` refers to.
    """
    return {**world.env, **dict.fromkeys(SECRETS, _administrator(world)[1])}


def shell(values: Mapping[str, str]) -> str:
    """Lines that a shell reads. Left out are names that no variable of a shell can have."""
    named = {name: value for name, value in values.items() if VARIABLE.fullmatch(name)}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in named.items())


def kubeconfig(apis: Mapping[str, Api], ports: Mapping[str, str], ca_pem: str) -> dict[str, object]:
    """A context for each API that listens; the first is the current one."""
    authority = base64.b64encode(ca_pem.encode()).decode()
    open_ = {name: api for name, api in apis.items() if api.address in ports}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": next(iter(open_), ""),
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://{ports[api.address]}",
                    "tls-server-name": api.address.rpartition(":")[0],
                    "certificate-authority-data": authority,
                },
            }
            for name, api in open_.items()
        ],
        "users": [{"name": name, "user": {"token": api.token}} for name, api in open_.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in open_],
    }


@dataclass(frozen=True)
class Files:
    """The two files of a state folder, readable by their owner only."""

    state: Path

    @property
    def env(self) -> Path:
        """For `. FILE` in a shell."""
        return (self.state / "env").resolve()

    @property
    def kubeconfig(self) -> Path:
        """For KUBECONFIG."""
        return (self.state / "kubeconfig").resolve()

    def write(self, values: Mapping[str, str], config: Mapping[str, object]) -> None:
        """Write both files again."""
        folder.write_text(self.env, shell(values))
        folder.write(self.kubeconfig, config)

    def remove(self) -> None:
        """Nothing listens any more."""
        self.env.unlink(missing_ok=True)
        self.kubeconfig.unlink(missing_ok=True)


def _administrator(world: World) -> tuple[str, str]:
    """Name and password of the world's first administrator, else of its first user."""
    user = next((user for user in world.users if user.role == "admin"), world.users[0])
    return user.name, str(user.password)
