"""Every play of a role with one hostile value in all its variables at once: what is there before, and what has to
arrive, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Calls = tuple[tuple[str | frozenset[str], ...], ...]
"""Words; a set at the end: in any order, as Ansible's sets have none."""
CACHE, RECORD = "/var/cache/bfinfra", "/var/lib/bfinfra"
APT = ("-o", "DPkg::Lock::Timeout=600", "--yes")
ANEW = ("--allow-downgrades", "--no-install-recommends")


@dataclass(frozen=True)
class Case:
    """`texts`: the role's secrets, the same on all machines; `there`: files on the machine before; `arrives`: path →
    bytes after it, None for no such file, a set for lines in any order; `calls`: programs that must have been run.
    """

    variables: Mapping[str, Any]
    arrives: Mapping[str, bytes | frozenset[bytes] | None] = field(default_factory=dict)
    calls: Calls = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    there: Mapping[str, bytes] = field(default_factory=dict)


Make = Callable[[str, str, Path], Case]
"""A machine's value, the value of the play's secrets, and a file to send → the case."""


def lines(text: str) -> list[str]:
    """What Ansible calls `stdout_lines` of a program that prints the text."""
    return text.rstrip("\r\n").splitlines()


def _installed(v: str, file: Path, **more: Any) -> dict[str, Any]:
    return {
        "form": "deb",
        "install": True,
        "packages": [{"source": file, "dest": f"{CACHE}/x.deb"}],
        "package": "",
        "package_sha256": v,
        "program": "/nowhere/program",
        "repository": {},
        **more,
    }


def _deb(name: str) -> tuple[str, ...]:
    return ("apt-get", "install", *APT, *ANEW, "--", name)


def begin(v: str, _: str, __: Path) -> Case:
    return Case({"record": f"{RECORD}/x", "mark_open": v}, {f"{RECORD}/x": f"{v}\n".encode()})


def license_of_vgpu(v: str, _: str, __: Path) -> Case:
    return Case(
        {"text": v, "mark_open": v, "mark_sealed": v},
        {"/etc/nvidia/gridd.conf": v.encode(), f"{RECORD}/vgpu_license": f"{v}\n".encode()},
    )


def license_back(v: str, _: str, __: Path) -> Case:
    return Case(
        {"text": v}, {"/etc/nvidia/gridd.conf": v.encode() or None}, there={"/etc/nvidia/gridd.conf": b"x"}
    )


def packages_deb(v: str, _: str, file: Path) -> Case:
    came = frozenset(line.encode() for line in lines(v) if line)
    return Case(
        _installed(v, file, record=f"{RECORD}-x"),
        {
            f"{CACHE}/x.deb": file.read_bytes(),
            f"{RECORD}-x.package": f"{v} none\n".encode(),
            f"{RECORD}-x.packages": came,
        },
        (_deb(f"{CACHE}/x.deb"),),
        there={f"{CACHE}/here": b"", f"{RECORD}-x.packages": v.encode()},
    )


def packages_rpm(v: str, _: str, file: Path) -> Case:
    name = v if len(v) < 100_000 else "x"
    return Case(
        _installed(v, file, record=f"{RECORD}-x", form="rpm", packages=[], package=name),
        {f"{RECORD}-x.package": f"{v} none\n".encode()},
        (("yum", "install", "--assumeyes", "--", name),),
        there={"/noted/there": v.encode(), f"{RECORD}/x": b""},
    )


def packages_off(v: str, _: str, __: Path) -> Case:
    v = v[:100_000]
    gone = frozenset(lines(v))
    return Case(
        {"record": f"{RECORD}-x", "form": "deb"},
        {f"{RECORD}-x.packages": None},
        (("apt-get", "purge", *APT, "--", gone),) if gone else (),
        there={f"{RECORD}-x.packages": v.encode(), "/noted/there": v.encode()},
    )


def _configs(v: str) -> list[dict[str, Any]]:
    return [{"path": "/etc/docker/daemon.json", "text": v, "unit": "docker.service", "runs": True}]


def toolkit(v: str, _: str, file: Path) -> Case:
    given = {
        "configs": _configs(v),
        "mark_open": v,
        "mark_sealed": v,
        "key": {"source": file, "dest": "/usr/share/keyrings/x.gpg"},
        **_installed(
            v, file, packages=[], package="x", repository={"source": file, "dest": "/etc/apt/x.list"}
        ),
    }
    return Case(
        given,
        {
            "/etc/docker/daemon.json": v.encode() or None,
            "/usr/share/keyrings/x.gpg": file.read_bytes(),
            "/etc/apt/x.list": file.read_bytes(),
            f"{RECORD}/nvidia_container_toolkit": f"{v}\n".encode(),
            f"{RECORD}/nvidia_container_toolkit.package": f"{v} none\n".encode(),
        },
        (_deb("x"),),
    )


def toolkit_off(v: str, _: str, __: Path) -> Case:
    return Case(
        {"configs": _configs(v), "form": "", "files": []},
        {"/etc/docker/daemon.json": v.encode() or None},
        there={"/etc/docker/daemon.json": b"x"},
    )


def client(v: str, secret: str, file: Path) -> Case:
    homes = {"root": "/root/.bitfusion", "nobody": "/srv/nobody/.bitfusion"}
    given = {
        "mark_open": v,
        "mark_sealed": v,
        "package": {"source": file, "dest": f"{CACHE}/x.deb"},
        "package_sha256": v,
        "install": True,
        "unfinished": True,
        "token": True,
        "group": "",
        "users": [{"name": name, "path": path} for name, path in homes.items()],
    }
    return Case(
        given,
        {
            f"{CACHE}/x.deb": file.read_bytes(),
            f"{RECORD}/bitfusion_client": f"{v}\n".encode(),
            f"{RECORD}/bitfusion_client.package": f"{v} none\n".encode(),
            "/etc/bitfusion/tls/ca.crt": secret.encode(),
            "/etc/bitfusion/servers.conf": secret.encode(),
            **{f"{path}/client.yaml": secret.encode() for path in homes.values()},
        },
        (_deb(f"{CACHE}/x.deb"),),
        texts=dict.fromkeys(("ca.crt", "servers.conf", "client.yaml"), secret),
    )


def client_off(v: str, _: str, __: Path) -> Case:
    v = v[:100_000]
    owner = v.rstrip("\r\n").partition(":")[0]
    return Case(
        {"form": "deb", "files": [], "folders": []},
        calls=(("apt-get", "purge", *APT, "--", owner),),
        there={"/noted/there": v.encode()},
    )


def _flexdirect(v: str, file: Path, by: str) -> dict[str, Any]:
    return {
        "mark_open": v,
        "mark_sealed": v,
        "package": {"source": file, "dest": f"{CACHE}/x.deb"},
        "package_sha256": v,
        "install": True,
        "init": True,
        "unfinished": True,
        "license_by": by,
        "unit": v,
    }


def _flexdirect_arrives(v: str, file: Path) -> dict[str, bytes | None]:
    return {
        f"{CACHE}/x.deb": file.read_bytes(),
        "/etc/systemd/system/flexdirect-scheduler.service": v.encode() or None,
        f"{RECORD}/flexdirect_host": f"{v}\n".encode(),
        f"{RECORD}/flexdirect_host.package": f"{v} none\n".encode(),
    }


def flexdirect(v: str, secret: str, file: Path) -> Case:
    return Case(
        _flexdirect(v, file, "argument"),
        _flexdirect_arrives(v, file),
        (("flexdirect", "init", "-e", "Yes", "-l", secret), _deb(f"{CACHE}/x.deb")),
        texts={"license": secret},
    )


def flexdirect_asked(v: str, secret: str, file: Path) -> Case:
    return Case(
        _flexdirect(v, file, "stdin"),
        {**_flexdirect_arrives(v, file), "/noted/stdin": f"{secret}\n".encode()},
        (("flexdirect", "init", "-e", "Yes"),),
        texts={"license": secret},
    )


def flexdirect_off(v: str, _: str, __: Path) -> Case:
    return Case(
        {"form": "script", "files": [f"{CACHE}/x"], "uninstall": ["uninstall-it", v]},
        {"/usr/bin/flexdirect": None, f"{CACHE}/x": None},
        (("uninstall-it", v),),
        there={"/usr/bin/flexdirect": b"", f"{CACHE}/x": b""},
    )


def pool(v: str, _: str, __: Path) -> Case:
    return Case(
        {"lists": [{"path": "/etc/bitfusionio/a_servers.conf", "text": v}], "gone": ["/etc/bitfusionio/b"]},
        {"/etc/bitfusionio/a_servers.conf": v.encode(), "/etc/bitfusionio/b": None},
        there={"/etc/bitfusionio/b": b""},
    )


def prepare(v: str, _: str, file: Path) -> Case:
    given = {"marked": False, "mark_open": v, "swap_off": True, "fstab": v, "modules": [v], "sysctl": v}
    return Case(
        {**_installed(v, file), **given},
        {
            f"{RECORD}/kubeadm_cluster": f"{v}\n".encode(),
            **({"/etc/fstab": v.encode()} if v else {}),
            "/etc/modules-load.d/bfinfra-kubernetes.conf": f"{v}\n".encode(),
            "/etc/sysctl.d/99-bfinfra-kubernetes.conf": v.encode() or None,
        },
        (("modprobe", "--", v), ("swapoff", "--all")),
    )


def init(v: str, _: str, __: Path) -> Case:
    return Case(
        {"reset": True, "words": [v, v], "mark_done": v},
        {f"{RECORD}/kubeadm_cluster": f"{v}\n".encode()},
        (
            ("kubeadm", "init", "--skip-token-print", "--token-ttl", "5m", v, v),
            ("kubeadm", "reset", "--force"),
        ),
        there={f"{RECORD}/here": b""},
    )


def join(v: str, secret: str, __: Path) -> Case:
    return Case(
        {"reset": False, "words": [v]},
        {"/noted/discovery": secret.encode(), f"{RECORD}/kubeadm_cluster.discovery": None},
        (("kubeadm", "join", "--discovery-file", f"{RECORD}/kubeadm_cluster.discovery", v),),
        texts={"discovery": secret},
        there={f"{RECORD}/here": b""},
    )


def leave(v: str, _: str, __: Path) -> Case:
    kubectl = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
    gone: Calls = ((*kubectl, "drain", v, "--", v), (*kubectl, "delete", "node", "--", v))
    return Case(
        {"nodes": [v], "drain": [v]},
        calls=gone if lines(f"node/{v}") == [f"node/{v}"] else (),
        there={"/noted/there": v.encode()},
    )


def noted(v: str, _: str, __: Path) -> Case:
    return Case(
        {"mark_sealed": v}, {f"{RECORD}/kubeadm_cluster": f"{v}\n".encode()}, there={f"{RECORD}/here": b""}
    )


def reset(v: str, _: str, __: Path) -> Case:
    return Case(
        {"form": "deb", "files": [f"{CACHE}/x.deb"], "fstab": v},
        {f"{CACHE}/x.deb": None, **({"/etc/fstab": v.encode()} if v else {})},
        there={f"{CACHE}/x.deb": b"", f"{RECORD}/kubeadm_cluster.packages": v.encode()},
    )


def image(v: str, _: str, file: Path) -> Case:
    given = {
        "record": f"{RECORD}/x.loaded_image",
        "mark_open": v,
        "mark_sealed": v,
        "source": file,
        "archive": f"{CACHE}/x.tar",
        "load": ["load-image", v],
        "show": ["show-image", v],
    }
    return Case(
        given,
        {f"{RECORD}/x.loaded_image": f"{v}\nlisted=sha256:{0:064}\n".encode(), f"{CACHE}/x.tar": None},
        (("load-image", v), ("show-image", v)),
    )


def image_off(v: str, _: str, __: Path) -> Case:
    return Case(
        {
            "record": f"{RECORD}/x.loaded_image",
            "archive": f"{CACHE}/x.tar",
            "used": ["load-image", "used", v],
            "remove": ["load-image", "rm", v],
        },
        {f"{RECORD}/x.loaded_image": None},
        (("load-image", "used", v), ("load-image", "rm", v)),
        there={f"{RECORD}/x.loaded_image": b""},
    )


CASES: Mapping[tuple[str, str, str], Make] = {
    ("record", "begin", ""): begin,
    ("vgpu_license", "main", ""): license_of_vgpu,
    ("vgpu_license", "remove", ""): license_back,
    ("packages", "install", "deb"): packages_deb,
    ("packages", "install", "rpm"): packages_rpm,
    ("packages", "remove", ""): packages_off,
    ("nvidia_container_toolkit", "main", ""): toolkit,
    ("nvidia_container_toolkit", "remove", ""): toolkit_off,
    ("bitfusion_client", "main", ""): client,
    ("bitfusion_client", "remove", ""): client_off,
    ("flexdirect", "main", "license as an argument"): flexdirect,
    ("flexdirect", "main", "license as an answer"): flexdirect_asked,
    ("flexdirect", "remove", ""): flexdirect_off,
    ("flexdirect_pool", "main", ""): pool,
    ("kubeadm", "prepare", ""): prepare,
    ("kubeadm", "init", ""): init,
    ("kubeadm", "join", ""): join,
    ("kubeadm", "leave", ""): leave,
    ("kubeadm", "record", ""): noted,
    ("kubeadm", "reset", ""): reset,
    ("loaded_image", "main", ""): image,
    ("loaded_image", "remove", ""): image_off,
}
"""Role, its tasks, and which way through them."""
