"""The programs of the machines: small ones that read, those of packages, and the output of FlexDirect and
Bitfusion clients.
"""

from __future__ import annotations

import gzip
import io
import itertools
import posixpath
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bfinfra.sandbox.linux import gpus, runtimes
from bfinfra.sandbox.linux.kubeadm import Kubernetes
from bfinfra.sandbox.linux.machine import Machine, Node, Package
from bfinfra.sandbox.linux.output import Output

UNKNOWN = 127
KNOCK = 'exec 3<>"/dev/tcp/$1/$2"'
REPLACED = 'umask 077 && cat > "$1.new" && mv -fT -- "$1.new" "$1"'
LICENSES = 7070
PACKAGED = ("flexdirect", "bitfusion", "kubeadm", "kubectl")


@dataclass(frozen=True)
class Programs:
    """`servers`: FlexDirect servers that answer now, "address:port" → the machine; `bitfusion`: Bitfusion
    servers likewise, with the MiB of their GPUs.
    """

    servers: Callable[[], Mapping[str, Machine]] = dict
    bitfusion: Callable[[], Mapping[str, Sequence[int]]] = field(default=dict)
    kubernetes: Kubernetes = field(default_factory=Kubernetes)
    addresses: Callable[[], frozenset[str]] = frozenset

    def run(self, machine: Machine, argv: Sequence[str], user: str, stdin: str = "") -> Output:
        """Run one. 127 and its name where there is none such."""
        name, words = posixpath.basename(argv[0]) if argv else "", list(argv[1:])
        if name in PACKAGED and machine.read(f"/usr/bin/{name}") is None:
            return Output(f"{name}: command not found\n", UNKNOWN)
        match name:
            case "flexdirect":
                return gpus.flexdirect(machine, words, self.servers(), stdin)
            case "bitfusion":
                return gpus.bitfusion(machine, words, user, self.bitfusion())
            case "kubeadm" | "kubectl":
                return Output(*self.kubernetes.run(name, machine, words))
            case "install" | "runuser":
                return (_put if name == "install" else _written_by)(machine, words, stdin)
        return self._small(name, machine, words, user)

    def _knocked(self, words: list[str]) -> Output:
        """Bash that connects: license servers answer, machines refuse on closed ports, all other addresses
        time out.
        """
        if len(words) != 7 or words[1:5] != ["bash", "-c", KNOCK, "bash"]:
            return Output("timeout: only bash that connects here\n", UNKNOWN)
        where, port = words[5:]
        if int(port) == LICENSES or self.kubernetes.listens(where, int(port)):
            return Output("")
        return (
            Output(
                (
                    f"bash: connect: Connection refused\nbash: line 1: /dev/tcp/{where}/{port}: Connection "
                    "refused\n"
                ),
                1,
            )
            if where in self.addresses()
            else Output("", 124)
        )

    def _small(self, name: str, machine: Machine, words: list[str], user: str) -> Output:
        if name == "timeout":
            return self._knocked(words)
        if name in runtimes.UNITS:
            return Output(*runtimes.run(name, machine, words, user, self.kubernetes.images_on(machine.name)))
        act = READING.get(name) or (DEBIAN.get(name) if machine.debian else None)
        if act is None:
            return Output(f"{name}: the sandbox's machines have no such program\n", UNKNOWN)
        return act(machine, words, user)


def _names(words: list[str]) -> list[str]:
    """What comes after the options."""
    return words[1:] if words[:1] == ["--"] else words


def _cat(machine: Machine, words: list[str], _: str) -> Output:
    printed, code = "", 0
    for path in _names(words):
        content = machine.read(path)
        printed += (
            f"cat: {path}: No such file or directory\n"
            if content is None
            else content.decode(errors="replace")
        )
        code |= content is None
    return Output(printed, code)


def _id(machine: Machine, words: list[str], user: str) -> Output:
    who = (*_names(words[1:]), user)[0]
    if who not in machine.users:
        return Output(f"id: '{who}': no such user\n", 1)
    printed = {"-un": who, "-Gn": " ".join((who, *machine.groups.get(who, ())))}.get(
        words[0] if words else "", ""
    )
    return Output(f"{printed}\n") if printed else Output("id: only -un and -Gn here\n", UNKNOWN)


def _uname(machine: Machine, words: list[str], __: str) -> Output:
    return Output(
        {"-m": "x86_64\n", "-r": "5.4.0-generic\n", "-n": f"{machine.name}\n"}.get(
            " ".join(words), "uname: only -m, -r and -n here\n"
        )
    )


def _sha256sum(machine: Machine, words: list[str], _: str) -> Output:
    printed, code = "", 0
    for path in _names(words):
        digest = machine.digest(path)
        printed += f"{digest}  {path}\n" if digest else f"sha256sum: {path}: No such file or directory\n"
        code |= not digest
    return Output(printed, code)


def _systemctl(machine: Machine, words: list[str], _: str) -> Output:
    if words[:1] == ["show"] and len(words) == 3 and words[1].startswith("--property="):
        unit = machine.services.get(words[2])
        known = unit is not None or machine.has_unit(words[2])
        values = {
            "LoadState": "loaded" if known else "not-found",
            "ActiveState": "active" if unit and unit.active else "inactive",
            "UnitFileState": ("enabled" if unit and unit.enabled else "disabled") if known else "",
            "NeedDaemonReload": "no",
        }
        names = words[1].removeprefix("--property=").split(",")
        return Output("".join(f"{name}={values.get(name, '')}\n" for name in names))
    return Output(f"systemctl {' '.join(words)}: the sandbox's machines only show units\n", UNKNOWN)


def _grep(machine: Machine, words: list[str], _: str) -> Output:
    """Every line of the files below a folder whose names end so: `-arsZ --include=*E -e "" -- FOLDER`."""
    match words:
        case ["-arsZ", include, "-e", "", "--", folder] if include.startswith("--include=*"):
            ending = include.removeprefix("--include=*")
        case _:
            return Output("grep: only -arsZ --include=*ENDING -e '' -- FOLDER here\n", UNKNOWN)
    paths = [
        path for path in machine.below(folder) if path.endswith(ending) and machine.read(path) is not None
    ]
    lines = [
        f"{path}\0{line}\n"
        for path in paths
        for line in (machine.read(path) or b"").decode(errors="replace").splitlines()
    ]
    return Output("".join(lines), 0 if lines else 1)


def _rmdir(machine: Machine, words: list[str], _: str) -> Output:
    for path in (word for word in words if not word.startswith("-")):
        if not list(machine.below(path)):
            machine.remove(path)
    return Output("")


def _find(machine: Machine, words: list[str], _: str) -> Output:
    match words:
        case [top, "-depth", "(", "-path", path, "-o", "-path", same, "-empty", ")", "-delete"] if (
            same == top
        ):
            machine.remove(path)
            return _rmdir(machine, [top], "")
    return Output("find: only TOP -depth ( -path PATH -o -path TOP -empty ) -delete here\n", UNKNOWN)


def _put(machine: Machine, words: list[str], stdin: str) -> Output:
    """A file out of what is handed in, with the folders above it."""
    match words:
        case ["-D", "--mode", mode, "/dev/stdin", path]:
            above = path.split("/")[1:-1]
            for depth in range(1, len(above) + 1):
                machine.files.setdefault("/" + "/".join(above[:depth]), Node(None, 0o755))
            machine.write(path, Node(stdin.encode(), int(mode, 8)))
            return Output("")
    return Output("install: only -D --mode MODE /dev/stdin PATH here\n", UNKNOWN)


def _written_by(machine: Machine, words: list[str], stdin: str) -> Output:
    """A file of a user's own, out of what is handed in, through one name and then another."""
    match words:
        case ["--user", user, "--", "/bin/sh", "-c", script, "sh", path] if script == REPLACED:
            if user not in machine.users:
                return Output(f"runuser: user {user} does not exist\n", 1)
            why = machine.write(path, Node(stdin.encode(), 0o600, user))
            return Output(f"sh: 1: cannot create {path}.new: {why}\n" if why else "", 2 if why else 0)
    return Output("runuser: only a user's own file out of what is handed in here\n", UNKNOWN)


def _kernel(_: Machine, __: list[str], ___: str) -> Output:
    """Modules, settings and swap of a kernel that these machines have none of."""
    return Output("")


def _dpkg_query(machine: Machine, words: list[str], _: str) -> Output:
    if words[:1] == ["--show"] and words[1:2] and words[1].startswith("--showformat=${Package}"):
        return Output("".join(f"{name}\n" for name in sorted(machine.packages)))
    if words[:1] != ["-S"] or len(words) != 2:
        return Output("dpkg-query: only -S and --show with names here\n", UNKNOWN)
    owner = next((name for name, each in machine.packages.items() if words[1] in each.files), "")
    return (
        Output(f"{owner}: {words[1]}\n")
        if owner
        else Output(f"dpkg-query: no path found matching pattern {words[1]}\n", 1)
    )


def _apt_get(machine: Machine, words: list[str], _: str) -> Output:
    verb, *rest = [
        word
        for before, word in itertools.pairwise(("", *words))
        if not word.startswith("-") and before != "-o"
    ]
    if verb == "purge":
        for name in rest:
            for path in reversed((machine.packages.pop(name, None) or Package("")).files):
                if not list(machine.below(path)):
                    machine.remove(path)
        return Output("")
    if verb != "install" or not all(word.endswith(".deb") for word in rest):
        return Output("apt-get: the sandbox's machines install .deb files only\n", 100)
    if "--simulate" in words:
        return next(
            (done for path in rest if (done := _install(machine.copy(), path, _contents_of_deb)).code),
            Output("".join(_coming(machine, path) for path in rest)),
        )
    return next(
        (done for path in rest if (done := _install(machine, path, _contents_of_deb)).code), Output("")
    )


def _coming(machine: Machine, path: str) -> str:
    name, version, _ = _contents_of_deb(machine.read(path) or b"")
    there = machine.packages.get(name)
    return (
        ""
        if there and there.version == version
        else (
            f"Inst {name} {f'[{there.version}] ' if there else ''}({version} local-deb [amd64])\nConf {name}"
            f" ({version} local-deb [amd64])\n"
        )
    )


def _install(
    machine: Machine, path: str, contents: Callable[[bytes], tuple[str, str, dict[str, Node]]]
) -> Output:
    try:
        name, version, files = contents(machine.read(path) or b"")
    except (ValueError, KeyError, OSError, tarfile.TarError):
        return Output(f"E: Invalid archive: {path}\n", 100)
    made = list(machine.packages[name].files) if name in machine.packages else []
    for each, node in files.items():
        above = ("/".join(each.split("/")[: depth + 1]) for depth in range(1, each.count("/")))
        for place, found in (
            *((folder, Node(None, 0o755)) for folder in above if folder not in machine.files),
            (each, node),
        ):
            machine.files[place] = found
            made.append(place)
    machine.packages[name] = Package(version, tuple(dict.fromkeys(made)))
    return Output(f"RunContext up {name} ({version}) ...\n")


def _contents_of_deb(data: bytes) -> tuple[str, str, dict[str, Node]]:
    """Name, version and files of a .deb that the sandbox made."""
    if not data.startswith(b"!<arch>\n"):
        raise ValueError("no archive")
    members, at = {}, 8
    while at < len(data):
        name, size = data[at : at + 16].decode().strip(), int(data[at + 48 : at + 58])
        members[name] = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    control = _untar(members["control.tar.gz"])["/control"].content or b""
    fields = dict(line.split(": ", 1) for line in control.decode().splitlines() if ": " in line)
    return fields["Package"], fields["Version"], _untar(members["data.tar.gz"])


def _untar(data: bytes) -> dict[str, Node]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
        return {
            each.name.removeprefix("."): Node(tar.extractfile(each).read(), each.mode & 0o777)  # type: ignore[union-attr]  # files have content
            for each in tar.getmembers()
            if each.isfile()
        }


Act = Callable[[Machine, list[str], str], Output]
READING: dict[str, Act] = {
    "nvidia-smi": lambda machine, *_: gpus.nvidia_smi(machine),
    "cat": _cat,
    "id": _id,
    "uname": _uname,
    "sha256sum": _sha256sum,
    "systemctl": _systemctl,
    "grep": _grep,
    "rmdir": _rmdir,
    "find": _find,
    **dict.fromkeys(("modprobe", "sysctl", "swapoff", "swapon"), _kernel),
}
DEBIAN: dict[str, Act] = {"dpkg-query": _dpkg_query, "apt-get": _apt_get}
