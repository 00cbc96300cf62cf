"""The files that a container finds in its volumes: Secrets and ConfigMaps as they are, and what its init
containers copied.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname, join, normpath

from bfinfra.sandbox.kubernetes.objects import Object, dig

Find = Callable[[str, str], Object | None]
"""The Secret or ConfigMap of a plural (`secrets`, `configmaps`) and name in the pod's namespace."""
GROUP_READ, OTHERS_READ = 0o040, 0o004


@dataclass
class File:
    """A file in a volume. `mode`: as the volume gives it; a copy belongs to the user who made it."""

    content: str
    mode: int = 0o600
    owned: bool = False


@dataclass
class Volume:
    """`written`: what init containers wrote there; only an emptyDir takes it."""

    writable: bool
    files: dict[str, File] = field(default_factory=dict)


class FilesError(Exception):
    """A program can't read or write a file; the message is the program's."""


class ContainerFiles:
    """One container's view of its pod's volumes."""

    def __init__(self, pod: Object, container: Object, volumes: Mapping[str, Volume]) -> None:
        self._security = {
            **(dig(pod, "spec", "securityContext") or {}),
            **(container.get("securityContext") or {}),
        }
        self._volumes = volumes
        self.mounts = sorted(
            (
                (normpath(each["mountPath"]), each)
                for each in container.get("volumeMounts") or []
                if each["name"] in volumes
            ),
            key=lambda mount: -len(mount[0]),
        )

    @property
    def root(self) -> bool:
        """True if it runs as root, by the manifest."""
        return not self._security.get("runAsUser") and not self._security.get("runAsNonRoot")

    def mounted(self, path: str) -> bool:
        """Return whether a volume is mounted at a path or above it."""
        return self._at(path) is not None

    def read(self, path: str) -> str | None:
        """The content; None where there is no such file in a volume. Raises FilesError if it may not be
        read.
        """
        found = self._at(path)
        file = found and found[0].files.get(found[1])
        if not file:
            return None
        if not (
            self.root
            or file.owned
            or file.mode & OTHERS_READ
            or (file.mode & GROUP_READ and "fsGroup" in self._security)
        ):
            raise FilesError(f"open {path}: permission denied")
        return file.content

    def write(self, path: str, content: str) -> None:
        """Write a file; lost where no volume is there. Raises FilesError if a volume is read-only."""
        if found := self._at(path):
            volume, name, mount = found
            if not volume.writable or mount.get("readOnly"):
                raise FilesError(f"open {path}: read-only file system")
            volume.files[name] = File(content, owned=True)

    def rename(self, path: str, to: str) -> None:
        """Move a file to a name beside it. Raises FilesError with Linux's message: a mounted file is busy."""
        if any(place == path for place, _ in self.mounts):
            raise FilesError(f"rename {path} {to}: device or resource busy")
        if content := self.read(path):
            try:
                self.write(to, content)
            except FilesError:
                raise FilesError(f"rename {path} {to}: read-only file system") from None

    def run(self, container: Object) -> None:
        """Copy files as a container's shell does. Raise FilesError where cp would fail."""
        words = [str(each) for each in [*(container.get("command") or []), *(container.get("args") or [])]]
        for command in _commands(words):
            if (
                command[0] == "cp"
                and len(paths := [word for word in command[1:] if not word.startswith("-")]) > 1
            ):
                self._copy(paths[:-1], paths[-1])

    def _copy(self, sources: list[str], target: str) -> None:
        into = (
            len(sources) > 1
            or target.endswith("/")
            or any(place == normpath(target) and not each.get("subPath") for place, each in self.mounts)
        )
        for source in sources:
            if not self.mounted(source) or "*" in source:
                continue  # the image's own
            content = self.read(source)
            if content is None:
                raise FilesError(f"cp: cannot stat '{source}': No such file or directory")
            self.write(join(target, basename(source)) if into else target, content)

    def _at(self, path: str) -> tuple[Volume, str, Mapping[str, object]] | None:
        path = normpath(path)
        for place, mount in self.mounts:
            if path == place or path.startswith(f"{place.rstrip('/')}/"):
                inside = join(mount.get("subPath") or "", path[len(place) :].lstrip("/")).rstrip("/")
                return self._volumes[mount["name"]], inside, mount
        return None


def volumes_of(pod: Object, find: Find) -> dict[str, Volume]:
    """A pod's volumes, as they are when it starts."""
    found = {}
    for volume in dig(pod, "spec", "volumes", default=[]):
        if "emptyDir" in volume:
            found[volume["name"]] = Volume(writable=True)
            continue
        projected = volume.get("projected") or {}
        mode = (projected or volume.get("secret") or volume.get("configMap") or {}).get("defaultMode", 0o644)
        files: dict[str, File] = {}
        for source in projected.get("sources") or [volume]:
            files |= _files(source, mode, find)
        if files or projected or "secret" in volume or "configMap" in volume:
            found[volume["name"]] = Volume(writable=False, files=files)
    return found


def _files(source: Object, mode: int, find: Find) -> dict[str, File]:
    for kind, plural in (("secret", "secrets"), ("configMap", "configmaps")):
        if kind in source:
            named = source[kind]
            thing = find(plural, named.get("secretName") or named.get("name", "")) or {}
            data = {
                name: value if kind == "configMap" else base64.b64decode(value).decode(errors="replace")
                for name, value in (thing.get("data") or {}).items()
            }
            items = named.get("items") or [{"key": key, "path": key} for key in data]
            return {
                each["path"]: File(data[each["key"]], each.get("mode", mode))
                for each in items
                if each["key"] in data
            }
    return {}


def _commands(words: list[str]) -> list[list[str]]:
    """The commands of a shell's line; none where no shell runs one."""
    if len(words) < 3 or basename(words[0]) not in ("sh", "bash") or words[1] != "-c":
        return [words] if words else []
    found: list[list[str]] = [[]]
    lexer = shlex.shlex(words[2].replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        for word in lexer:
            if set(word) <= set(";&|()<>"):
                found.append([])
            else:
                found[-1].append(word)
    except ValueError:
        return []
    return [command for command in found if command]


def home_of(files: ContainerFiles, environment: Mapping[str, str]) -> str:
    """The home folder of a container's user; of an unknown user the one that something is mounted in, as
    images are not looked into.
    """
    if environment.get("HOME"):
        return environment["HOME"]
    homes = [dirname(place) for place, _ in files.mounts if basename(place) == ".bitfusion"]
    return "/root" if files.root or not homes else homes[0]
