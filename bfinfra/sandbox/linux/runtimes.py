"""Container runtimes on a machine: docker, podman and containerd's ctr load archives of images, list them and
remove them. They run nothing.

What a runtime has is a file of the machine, canonical name → id; real runtimes keep databases there.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import tarfile
from collections.abc import Collection, Mapping

from bfinfra.sandbox.linux.machine import Machine, Node

UNITS = {"docker": "docker.service", "ctr": "containerd.service", "podman": "crio.service"}
STORES = {
    "docker": "/var/lib/docker/images.json",
    "ctr": "/var/lib/containerd/images.json",
    "podman": "/var/lib/containers/images.json",
}
LISTED = "{{.Repository}}:{{.Tag}} {{.ID}}"
UNKNOWN = 127
Result = tuple[str, int]


def canonical(name: str) -> str:
    """A name in full: registry, path and tag."""
    first, slash, _ = name.partition("/")
    whole = (
        name
        if slash and (set(first) & {".", ":"} or first == "localhost")
        else f"docker.io/{name if slash else f'library/{name}'}"
    )
    return whole if ":" in whole.rpartition("/")[2] else f"{whole}:latest"


def run(program: str, machine: Machine, words: list[str], user: str, used: Collection[str]) -> Result:
    """Run a command of the container runtime and return its output and exit code. `used`: canonical names of
    the images that containers on the machine run.
    """
    unit = machine.services.get(UNITS[program])
    if unit is None and not machine.has_unit(UNITS[program]):
        return f"{program}: command not found\n", UNKNOWN
    if program != "podman" and (unit is None or not unit.active):
        return DOWN[program], 1
    if user != "root" and not (program == "docker" and "docker" in machine.groups.get(user, ())):
        return f"{program}: permission denied while trying to connect to its socket\n", 1
    return _ctr(machine, words, used) if program == "ctr" else _docker(program, machine, words, used)


def images(machine: Machine) -> frozenset[str]:
    """Canonical names of what its kubelet's runtime finds."""
    running = {
        program for program, unit in UNITS.items() if (found := machine.services.get(unit)) and found.active
    }
    return frozenset(name for program in running for name in _stored(machine, program))


def _docker(program: str, machine: Machine, words: list[str], used: Collection[str]) -> Result:
    has = _stored(machine, program)
    match words:
        case ["image", "ls", "--no-trunc", "--format", form] if form == LISTED:
            return "".join(f"{_shown(program, name)} {id_}\n" for name, id_ in has.items()), 0
        case ["image", "ls", "--no-trunc", "--quiet", name]:  # docker compares with names as it shows them
            return "".join(f"{id_}\n" for each, id_ in has.items() if name == _shown(program, each)), 0
        case ["load", "--input", path]:
            return _load(program, machine, path)
        case ["image", "rm", name]:
            return _removed(program, machine, name, used)
        case ["ps", "--quiet"]:
            return "", 0
    return (
        f"{program} {' '.join(words)}: the sandbox's machines only load images, list them and remove them\n",
        2,
    )


def _ctr(machine: Machine, words: list[str], used: Collection[str]) -> Result:
    has = _stored(machine, "ctr")
    match words:
        case ["--namespace", "k8s.io", "images", "ls", *rest] if len(rest) < 2 and all(
            each.startswith("name==") for each in rest
        ):
            names = [each.removeprefix("name==") for each in rest] or list(has)
            lines = [
                (
                    f"{name} application/vnd.docker.distribution.manifest.v2+json {has[name]} 1.0 MiB "
                    "linux/amd64 -\n"
                )
                for name in names
                if name in has
            ]
            return "REF TYPE DIGEST SIZE PLATFORMS LABELS\n" + "".join(lines), 0
        case ["--namespace", "k8s.io", "images", "import", path]:
            return _load("ctr", machine, path)
        case ["--namespace", "k8s.io", "images", "rm", name]:
            return _removed("ctr", machine, name, ())  # containers keep their snapshots: no question is asked
        case ["--namespace", "k8s.io", "containers", "ls", "--quiet", name] if name.startswith("image=="):
            return (
                f"{hashlib.sha256(name.encode()).hexdigest()}\n"
                if name.removeprefix("image==") in used
                else ""
            ), 0
    return f"ctr {' '.join(words)}: the sandbox's machines only import images, list them and remove them\n", 2


def _load(program: str, machine: Machine, path: str) -> Result:
    content = machine.read(path)
    if content is None:
        return f"open {path}: no such file or directory\n", 1
    try:
        found = _archived(content)
    except (tarfile.TarError, ValueError, KeyError, TypeError, AttributeError):
        return f"{path}: archive/tar: invalid tar header\n", 1
    if program == "ctr":
        found = {
            name: f"sha256:{hashlib.sha256(f'manifest of {id_}'.encode()).hexdigest()}"
            for name, id_ in found.items()
        }
    _store(program, machine, {**_stored(machine, program), **found})
    return "".join(f"Loaded image: {_shown(program, name)}\n" for name in found), 0


def _archived(content: bytes) -> dict[str, str]:
    """Canonical name → SHA-256 of its configuration. Raises KeyError if a part is missing."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:

        def part(name: str) -> bytes:
            stream = tar.extractfile(name)
            assert stream is not None
            return stream.read()

        found: dict[str, str] = {}
        for each in json.loads(part("manifest.json")):
            config = part(each["Config"])
            if [
                f"sha256:{hashlib.sha256(part(layer)).hexdigest()}" for layer in each["Layers"]
            ] != json.loads(config)["rootfs"]["diff_ids"]:
                raise ValueError("a layer is another")
            found |= dict.fromkeys(
                map(canonical, each["RepoTags"] or ()), f"sha256:{hashlib.sha256(config).hexdigest()}"
            )
    return found


def _removed(program: str, machine: Machine, name: str, used: Collection[str]) -> Result:
    has, whole = _stored(machine, program), canonical(name)
    if whole not in has:
        return f"Error response from daemon: No such image: {name}\n", 1
    if whole in used:
        return (
            (
                f'Error response from daemon: conflict: unable to remove repository reference "{name}" '
                "(must force) - container 4c01db0b339c is using its referenced image\n"
            ),
            1,
        )
    _store(program, machine, {each: id_ for each, id_ in has.items() if each != whole})
    return f"Untagged: {name}\n", 0


def _stored(machine: Machine, program: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(machine.read(STORES[program]) or b"{}")
    return found


def _store(program: str, machine: Machine, has: Mapping[str, str]) -> None:
    path = STORES[program]
    mode = machine.files[path].mode if path in machine.files else 0o600
    machine.remove(path if has else posixpath.dirname(path))
    if has:
        machine.files.setdefault(posixpath.dirname(path), Node(None, 0o710))
        machine.files[path] = Node((json.dumps(dict(sorted(has.items()))) + "\n").encode(), mode)


def _shown(program: str, name: str) -> str:
    """Docker leaves out its defaults."""
    return name.removeprefix("docker.io/").removeprefix("library/") if program == "docker" else name


DOWN = {
    "docker": (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
    ),
    "ctr": (
        'ctr: failed to dial "/run/containerd/containerd.sock": connection error: desc = "transport: error '
        'while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"\n'
    ),
}
