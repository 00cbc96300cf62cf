"""What a Site may declare, and what it has declared as its checks get it: in a folder of its own, and nowhere
else. Jobs and watchers alike load a site from here only.

A declared variable never becomes one of a process: neither Python, nor OpenSSL, nor a program that bfinfra
starts can see it. So its name may be any.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.app.load import trusting
from bfinfra.backends.credentials import PASSWORDS, USERNAMES
from bfinfra.backends.kubernetes.login import PASSWORD
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.files import PRIVATE, create, make_folder
from bfinfra.model.records import dataclass
from bfinfra.operator.names import FILE, KEY, OBJECT, SITE, VARIABLE
from bfinfra.spec.load import load_confined
from bfinfra.spec.vcenter import SERVERS

if TYPE_CHECKING:
    from bfinfra.model.site import Site
    from bfinfra.operator.desired import Desired
    from bfinfra.sandbox import Running

DATA = "..data"  # the kubelet's link to the folder with a volume's present content
LARGEST = 100 << 20  # bytes: 100 objects of at most 1 MiB each
READ_ONLY, WRITABLE = 0o500, 0o700
VCENTER = frozenset({*SERVERS, *USERNAMES, *PASSWORDS, *PASSWORD})
"""The variables that a site reads without naming them."""


def refusal(wanted: Desired) -> str:
    """Return what the Site declares and may not, and what to do about it, or ""."""
    return "; ".join(list(_refusals(wanted))[:3])


def _refusals(wanted: Desired) -> Iterator[str]:
    used = VCENTER | {*_references(wanted.site)}
    for name, ref in wanted.env.items():
        at = f"spec.env.{_shown(name)}"
        if not VARIABLE.fits(name):
            yield f"{at}: {VARIABLE.words}; give it another name, here and in spec.site"
        elif name not in used:
            yield (
                f"{at}: no {{env: {name}}} is in spec.site, and a Site declares only what its references "
                "read; remove it, or write the reference"
            )
        yield from _misdirected(at, ref)
    for path, ref in wanted.files.items():
        at = f"spec.files.{_shown(path)}"
        if not FILE.fits(path) or path == SITE:
            yield f"{at}: {FILE.words}; give it another path, here and in spec.site"
        yield from _misdirected(at, ref)


def _misdirected(at: str, ref: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for way, named in ref.items():
        for field, rule in (("name", OBJECT), ("key", KEY)):
            if not rule.fits(str(named.get(field, ""))):
                yield f"{at}.{way}.{field}: {rule.words}; correct it"


def _references(node: object) -> Iterator[str]:
    """The names in each `{env: NAME}`."""
    if isinstance(node, Mapping):
        if node.keys() == {"env"} and isinstance(node["env"], str):
            yield node["env"]
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list | tuple):
        for each in node:
            yield from _references(each)


def _shown(name: str) -> str:
    """A name for a message, however long it is."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)[:80]


@dataclass(frozen=True)
class Contents:
    """`env`: variables; `files`: by path, the site's own with them. Both are secret."""

    env: Mapping[str, str]
    files: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Contents({', '.join([*self.env, *self.files])})"

    @property
    def digest(self) -> bytes:
        """Equal for equal contents, in this process's memory only."""
        found = hashlib.sha256()
        for name, value in sorted({**{k: v.encode() for k, v in self.env.items()}, **self.files}.items()):
            found.update(f"{name} {len(value)} ".encode() + value)
        return found.digest()

    def load(self, folder: Path, sandbox: Running | None = None) -> Site:
        """The site, which can name nothing but this. Raises SiteError, BfinfraError.

        `folder`: for its files; it is made anew, and nothing else is made in it.
        """
        try:
            self._write(folder)
        except OSError as error:
            why, then = error.strerror or type(error).__name__, "give each of spec.files a path of its own"
            raise BfinfraError(
                Problem("the Site's files can't be written", str(error.filename or folder), why, then)
            ) from None
        env, stand_ins = (sandbox.env, Path(sandbox.files)) if sandbox else ({}, None)
        site = load_confined(folder / SITE, env={**env, **self.env}, stand_ins=stand_ins)
        return replace(site, vcenter=trusting(site.vcenter, sandbox)) if sandbox and site.vcenter else site

    def _write(self, folder: Path) -> None:
        """Plain files and no links, in folders that only their owner can read and nobody writes to."""
        remove(folder)
        folder.mkdir(parents=True, mode=WRITABLE)
        for path, content in self.files.items():
            at = folder / path
            make_folder(at.parent, WRITABLE)
            if not at.parent.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(at.parent))
            create(at, content, PRIVATE)
        for each in (folder, *(found for found in folder.rglob("*") if found.is_dir())):
            each.chmod(READ_ONLY)


def remove(folder: Path) -> None:
    """Remove such a folder, if it is there. A link stays as it is."""
    if folder.is_symlink():
        return
    for place, _, _ in os.walk(folder):
        Path(place).chmod(WRITABLE)
    shutil.rmtree(folder, ignore_errors=True)


def mounted(site: Path, variables: Path | None = None) -> Contents:
    """What the kubelet has mounted for a Job. `site`: the site's file, with its other files beside it;
    `variables`: a folder with a file for each. Raises BfinfraError.

    It is read once, from open folders and through none but the kubelet's own links, so that nobody can
    exchange a file for a link between a check and the read.
    """
    found = _plain_files(site.parent)
    if site.name not in found:
        raise BfinfraError(Problem("there is no site", str(site)))
    env = {name: text(name, value) for name, value in _plain_files(variables).items()} if variables else {}
    own = found.pop(site.name)
    return Contents(env, {**found, SITE: own})


def text(name: str, value: bytes) -> str:
    """A variable's value. Raises BfinfraError if it is no text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BfinfraError(Problem(f"the variable {name} is not UTF-8 text", next="give it text")) from None


def _plain_files(folder: Path) -> dict[str, bytes]:
    """The regular files below a volume, by their path in it. Raises BfinfraError for anything else."""
    try:
        while True:  # again where the kubelet exchanges the content meanwhile, which it does once a minute
            current = _current(folder)
            with _opened(folder, current) as volume:
                found = dict(_walk(folder, volume))
            if _current(folder) == current:
                return found
    except OSError as error:
        raise _unfit(folder, "", error.strerror or type(error).__name__) from None


def _current(folder: Path) -> str:
    """The folder in a volume to which the kubelet's link leads; "" where it has made none."""
    try:
        found = str((folder / DATA).readlink())
    except FileNotFoundError:
        return ""
    if "/" in found or not found.startswith("..") or found == "..":
        raise _unfit(folder, DATA, "it is a link that the kubelet does not make")
    return found


@contextlib.contextmanager
def _opened(folder: Path, current: str) -> Iterator[int]:
    """A descriptor of the folder with a volume's content."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as held:
        found = os.open(folder, flags)
        held.callback(os.close, found)
        if current:
            found = os.open(current, flags, dir_fd=found)
            held.callback(os.close, found)
        yield found


def _walk(folder: Path, volume: int) -> Iterator[tuple[str, bytes]]:
    size = 0
    for place, folders, names, at in os.fwalk(".", dir_fd=volume, onerror=_raised):  # follows no link
        for name in (*folders, *names):
            path = os.path.normpath(f"{place}/{name}")
            content = _content(folder, path, name, at)
            if content is None:
                continue
            size += len(content)
            if size > LARGEST:
                raise _unfit(folder, path, f"the files have more than {LARGEST >> 20} MiB in all")
            yield path, content


def _raised(error: OSError) -> None:
    raise error


def _content(folder: Path, path: str, name: str, at: int) -> bytes | None:
    """A file's bytes; None for a folder. `at`: the open folder that it is in."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _unfit(folder, path, "it is a link") from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            return None
        raise _unfit(folder, path, "it is not a regular file")
    with os.fdopen(handle, "rb") as stream:
        return stream.read(LARGEST + 1)


def _unfit(folder: Path, path: str, why: str) -> BfinfraError:
    return BfinfraError(
        Problem("a file of the Site can't be used", str(folder / path), why, "bring it as one of spec.files")
    )
