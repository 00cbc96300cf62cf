"""A site that holds a secret of every sort, planted so that each can be distinguished from everything else; and the
world that it fits.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from trust.authority import Authority

from bfinfra.sandbox import SMALL_WORLD
from bfinfra.sandbox.factories.token import make_token

SORTS = {
    "plain": "",
    "double quotes": 'say "{}"',
    "single quotes": "it's {}'",
    "angle brackets": "<{}>&amp;",
    "backslash": "c:\\{}\\n",
    "umlauts": "pä{}ßwörd",
    "other letters": "密{}码",
    "url": "p+{}/?#=%20",
    "blanks": "two words {} more",
    "long": "{}" * 6,
    "json": '{{"auth": "{}"}}',
    "percent": "%s%d{}%",
    "dollar": "${{PATH}}{}`id`",
    "emoji": "🔑{}🔑",
    "yaml": "- {}: !!python/name:x",
}


def marker(name: str) -> str:
    """What no other text holds."""
    return hashlib.sha256(f"planted {name}".encode()).hexdigest()[:20].upper()


def sort(name: str) -> str:
    """A password of a sort."""
    return SORTS[name].format(*[marker(name + str(n)) for n in range(6)]) if SORTS[name] else marker(name)


@dataclass
class Planted:
    """`secrets` by name; `env` for the process that runs bfinfra; `seen`: what the programs that bfinfra
    starts were given.
    """

    folder: Path
    site: Path
    world: Path
    seen: Path
    secrets: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


def plant(folder: Path) -> Planted:
    """Everything in a folder of its own."""
    found = Planted(folder, folder / "site.yaml", folder / "world.yaml", folder / "seen")
    found.seen.mkdir(parents=True)
    secrets = found.secrets
    for name in (
        "vcenter password",
        "appliance password",
        "vcenter password of the appliance",
        "pepper",
        "kubeconfig token",
        "proxy password",
        "GOVC_PASSWORD",
        "KUBECTL_VSPHERE_PASSWORD",
        "secret of a command",
        "secret of a keyring",
    ):
        secrets[name] = marker(name)
    secrets |= {f"registry password with {name}": sort(name) for name in SORTS}
    secrets["private key"] = _key()
    secrets |= _token(folder)
    _programs(found)
    found.env = {
        "APPLIANCE_PASSWORD": secrets["appliance password"],
        "APPLIANCE_VCENTER": secrets["vcenter password of the appliance"],
        "PEPPER": secrets["pepper"],
        "GOVC_PASSWORD": secrets["GOVC_PASSWORD"],
        "KUBECTL_VSPHERE_PASSWORD": secrets["KUBECTL_VSPHERE_PASSWORD"],
        "HTTPS_PROXY": f"http://me:{secrets['proxy password']}@proxy.test:3128",
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        **{f"REGISTRY_{number}": sort(name) for number, name in enumerate(SORTS)},
    }
    (folder / "key.pem").write_text(secrets["private key"])
    found.world.write_text(_world(secrets))
    found.site.write_text(_site())
    return found


def identity(found: Planted, server: str) -> Path:
    """A kubeconfig whose user shows a client certificate; its key is planted too."""
    shown = Authority(found.folder).leaf("client")
    key = shown.file.read_text().partition("-----END CERTIFICATE-----\n")[2]
    found.secrets["client certificate's key"] = key
    for name, text in (("client.pem", shown.pem), ("client.key", key)):
        (found.folder / name).write_text(text)
    path = found.folder / "identity.kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [
                    {
                        "name": "c",
                        "cluster": {"server": server, "certificate-authority-data": _base64(shown.ca)},
                    }
                ],
                "users": [
                    {"name": "u", "user": {"client-certificate": "client.pem", "client-key": "client.key"}}
                ],
            }
        )
    )
    return path


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _key() -> str:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def _token(folder: Path) -> dict[str, str]:
    make_token(folder / "token.tar", servers=["10.2.0.5:56001"], name="planted")
    with tarfile.open(folder / "token.tar") as archive:
        stream = archive.extractfile("client.yaml")
        assert stream is not None
        client = yaml.safe_load(stream.read())
    return {"Bitfusion token": client["token"], "Bitfusion client": client["client_id"]}


def _programs(found: Planted) -> None:
    """A keyring and a command that note what they were given before they answer."""
    for name, secret in (("keyring", "secret of a keyring"), ("vault", "secret of a command")):
        (found.folder / f"{name}.answer").write_text(found.secrets[secret] + "\n")
        path = found.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        noted = (
            f"tr '\\0' '\\n' < /proc/$$/environ > {found.seen}/{name}.environ; tr '\\0' '\\n' < "
            f"/proc/$$/cmdline > {found.seen}/{name}.cmdline"
        )
        path.write_text(f"#!/bin/sh\n{noted}\ncat {found.folder}/{name}.answer\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _world(secrets: dict[str, str]) -> str:
    world = yaml.safe_load(SMALL_WORLD.read_text())
    world["env"] = {"VCENTER_PASSWORD": secrets["vcenter password"]}
    world["kubernetes_clusters"]["other"]["token"] = secrets["kubeconfig token"]
    del world["files"]["token.tar"]
    return yaml.safe_dump(world)


def _site() -> str:
    registries = {f"r-{number}": _registry({"env": f"REGISTRY_{number}"}) for number in range(len(SORTS))}
    registries |= {
        "r-file": _registry({"file": "key.pem"}),
        "r-command": _registry({"command": ["vault", "read", "it"]}),
        "r-keyring": _registry({"keyring": "registry/me"}),
    }
    properties = {
        "hostname": "bf-01.small.test",
        "customer_password": {"env": "APPLIANCE_PASSWORD"},
        "vcenter_username": "admin@small.test",
        "vcenter_password": {"env": "APPLIANCE_VCENTER"},
    }
    return json.dumps(
        {
            "site": "planted",
            "pepper": {"env": "PEPPER"},
            "vcenter": {
                "server": "vc.small.test",
                "username": "admin@small.test",
                "password": {"env": "VCENTER_PASSWORD"},
                "trust": {"ca_file": "ca.pem"},
            },
            "gpu_host": {
                "esx1.small.test": {
                    "passthrough": [{"vendor": "0x10de", "device": "0x1eb8"}],
                    "reboot": "if_needed",
                }
            },
            "bitfusion_server": {
                "bf-01": {
                    "ova": {"file": "server.ova"},
                    "host": "esx1.small.test",
                    "gpus": 1,
                    "properties": properties,
                    "networks": {
                        "Network 1": {
                            "network": "VM Network",
                            "address": "10.2.0.5/24",
                            "gateway": "10.2.0.1",
                        }
                    },
                }
            },
            "bitfusion_token": {"team-a": {"source": {"tar": "token.tar"}}},
            "supervisor_namespace": {
                "team-a": {
                    "cluster": "compute",
                    "storage": {"gold": "100GiB"},
                    "vm_classes": ["best-effort-small"],
                }
            },
            "kubernetes_cluster": {"other": {"kubeconfig": {"file": "other.kubeconfig"}}},
            "registry_credential": {
                **registries,
                "r-space": {
                    **_registry({"env": "REGISTRY_0"}),
                    "cluster": "team-a",
                    "namespaces": ["team-a"],
                },
            },
            "token_secret": {"t": {"cluster": "other", "token": "team-a", "namespaces": ["default"]}},
            "client_image": {
                "image": {
                    "image": "10.1.0.3/x/y:latest",
                    "base": "10.1.0.3/x/base:ubuntu20.04",
                    "context": "image",
                    "build": "never",
                    "package": "bitfusion-client-ubuntu2004_3.0.0-11_amd64.deb",
                }
            },
        },
        indent=1,
    )


def _registry(password: object) -> dict[str, object]:
    return {
        "cluster": "other",
        "namespaces": ["default"],
        "server": "10.1.0.3",
        "username": "me@small.test",
        "password": password,
    }
