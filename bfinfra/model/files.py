"""Every file that bfinfra writes on this machine, but for journals and pipes: whole or not at all, never
through another user's link, and never open to more people than its mode says, whatever the umask.

A process that is killed in between leaves the old file as it was, and may leave `.bfinfra-…` beside it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bfinfra.model.errors import BfinfraError, Problem

READABLE, PRIVATE = 0o644, 0o600
OTHERS = 0o077
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NEXT = {
    **dict.fromkeys(FULL, "free space there, then run again"),
    errno.EBUSY: "it is mounted by itself: mount its folder instead",
    errno.ENOTDIR: "name another folder",
    errno.ELOOP: "remove one of the links, or name a file elsewhere",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENXIO: "start what reads it first",
    **dict.fromkeys((errno.EBADF, errno.EPIPE), "name a file"),
}
STDOUT = "-"
STREAM = re.compile(r"/dev/(?:fd/(\d+)|stdout|(stderr))|/proc/self/fd/(\d+)")
PUBLIC = stat.S_ISVTX | stat.S_IWOTH  # as /tmp: everybody may write there, nobody may remove another's file
PROBE = 4096  # bytes
FRESH = ".bfinfra-"
HOPS = 40  # links that lead to one another, as Linux follows them

Content = str | bytes | Iterable[bytes]


def write_whole(path: Path, content: Content, mode: int = READABLE) -> None:
    """Write a file that others read at any moment: they see the old one or the new one. Text is UTF-8.

    `mode`: the widest that it gets; a narrower umask counts, and a narrower mode of the old file. The old
    file's owner stays, unless the file is private. A second name (hard link) of the old file keeps the old
    content. Raises BfinfraError for a link, for what is no regular file, and for what the disk refuses.
    """
    with reported(path):
        old = _replaceable(path)
        with _fresh(path, content, mode if old is None else _kept(old, mode), old) as fresh:
            fresh.replace(path)


def create(path: Path, content: Content, mode: int = READABLE) -> None:
    """Write a new file, whole. Raises BfinfraError, also where something has that name already."""
    with reported(path):
        _check_way(path.parent)
        with _fresh(path, content, mode) as fresh:
            try:
                os.link(fresh, path)
            except FileExistsError:
                raise _refused(path, "it exists already", "remove it, or name another one") from None
            except OSError:  # a file system without a second name
                path.touch(exist_ok=False)
                fresh.replace(path)


def claim(path: Path, mode: int) -> None:
    """Make an empty file, unless there is one. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        path.touch(mode, exist_ok=False)


def edit(path: Path, text: str) -> None:
    """Write a user's own file anew, whole: its mode, owner and access list stay, and where it is a link, the
    file that it leads to is written. Raises BfinfraError.
    """
    with reported(path):
        _check_way(path)
        target = path.resolve(strict=True)
        old = _replaceable(target)
        assert old is not None
        with _fresh(target, text, stat.S_IMODE(old.st_mode) & 0o777, old) as fresh:
            _copy_attributes(target, fresh)
            fresh.replace(target)


def write_named(name: str | Path, content: Content, mode: int = READABLE) -> None:
    """Write what a user named for output: whole, if it is a file. A standard stream, `-` for the first of
    them, a device and a pipe get it as it is. Raises BfinfraError.
    """
    path = Path(name)
    with reported(path):
        stream = _stream(str(name))
        if stream is None:
            write_whole(path, content, mode)
            return
        with os.fdopen(stream, "wb") as out:
            out.writelines(_parts(content))


def overwrite(path: Path, content: Content) -> None:
    """Write into a file as it is, which a crash may leave half: for one that is mounted by itself, and can't
    be replaced. Raises BfinfraError, also for a link.
    """
    with reported(path):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(path, flags, READABLE), "wb") as out:
            out.writelines(_parts(content))


def check_named(name: str) -> None:
    """Raises the BfinfraError that `write_named` would raise now. Called before what takes long, or can't be
    done again.
    """
    path = Path(name)
    with reported(path):
        stream = _stream(name)
        if stream is not None:
            os.close(stream)
            return
        _replaceable(path)
        with _fresh(path, bytes(PROBE), PRIVATE):
            pass


def make_folder(path: Path, mode: int = 0o755) -> None:
    """Make a folder and its missing parents; `mode`: the widest that they get. Raises OSError."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        with contextlib.suppress(FileExistsError):  # another run was faster
            missing.mkdir(mode=mode)


@contextlib.contextmanager
def reported(path: Path, what: str = "the file can't be written") -> Iterator[None]:
    """An OSError of what is done here becomes a BfinfraError with what to do next."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        raise BfinfraError(
            Problem(
                what,
                str(path) if FRESH in where else where,  # that name is unpredictable
                error.strerror or type(error).__name__,
                NEXT.get(error.errno or 0)
                or f"give yourself permission to write to {path.parent}, or name a file elsewhere",
            )
        ) from None


def _replaceable(path: Path) -> os.stat_result | None:
    """What stands there, None for nothing. Refused unless it is a regular file that this user may replace."""
    folder = path.parent
    _check_way(folder)
    if not folder.is_dir():
        raise _refused(path, f"there is no folder {folder}", f"mkdir -p {folder}")
    try:
        old = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise _refused(path, "it is a folder", "name a file in it")
    if stat.S_ISLNK(old.st_mode):
        raise _refused(path, "it is a link", "name the file itself, or remove the link")
    if not stat.S_ISREG(old.st_mode):
        raise _refused(path, "it is not a regular file", "name another one, or remove it")
    if old.st_uid != os.geteuid() and _is_public(folder):
        raise _refused(
            path,
            f"it belongs to somebody else, and everybody may write to {folder}",
            "name a file in a folder of your own",
        )
    return old


def _check_way(path: Path, hops: int = HOPS) -> None:
    """Refuse a way through a link that another user put where everybody may. Links of one's own are fine."""
    for each in (*reversed(path.parents), path):
        if not each.is_symlink():
            continue
        if not hops:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        owner = each.lstat().st_uid
        if owner not in (os.geteuid(), each.parent.stat().st_uid) and _is_public(each.parent):
            raise _refused(
                each, "it is a link of somebody else", "name the file by a way without it, or remove it"
            )
        _check_way(each.parent / each.readlink(), hops - 1)


def _is_public(folder: Path) -> bool:
    return folder.stat().st_mode & PUBLIC == PUBLIC


def _kept(old: os.stat_result, mode: int) -> int:
    """The part of `mode` that the old file has too. Whether a file can be run is not the old one's to say."""
    return mode & (old.st_mode & 0o666 | (old.st_mode & 0o444) >> 2)


@contextlib.contextmanager
def _fresh(path: Path, content: Content, mode: int, old: os.stat_result | None = None) -> Iterator[Path]:
    """A new file beside `path`, gone afterwards unless it was renamed. What replaces an old file is on the
    disk first, so that a power cut loses neither.
    """
    fresh = path.with_name(f"{FRESH}{secrets.token_hex(8)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as out:
            _set_owner_and_mode(handle, mode, old)
            out.writelines(_parts(content))
            if old is not None:
                out.flush()
                os.fsync(handle)
        yield fresh
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def _set_owner_and_mode(handle: int, mode: int, old: os.stat_result | None) -> None:
    made = os.fstat(handle)
    if old is None:
        mode &= made.st_mode | 0o700  # the umask, which takes nothing from the owner
    elif mode & OTHERS and (old.st_uid, old.st_gid) != (made.st_uid, made.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except PermissionError:
            mode = _given(handle, mode, old.st_gid)
    if mode != stat.S_IMODE(made.st_mode):
        # Of a file system without modes a private file is refused.
        with contextlib.suppress(*[PermissionError] if mode & OTHERS else []):
            os.fchmod(handle, mode)


def _given(handle: int, mode: int, group: int) -> int:
    """Give a file to a group. Returns its mode: another group gets what everybody gets."""
    try:
        os.fchown(handle, -1, group)
    except PermissionError:
        return mode & (0o707 | (mode & 0o007) << 3)
    return mode


def _copy_attributes(old: Path, new: Path) -> None:
    """Copy extended attributes, access lists among them, as far as the system lets this user."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(old):
            with contextlib.suppress(OSError):
                os.setxattr(new, name, os.getxattr(old, name))


def _stream(name: str) -> int | None:
    """A descriptor of a standard stream, a device or a pipe; None for what is a file, or is to be one."""
    if found := STREAM.fullmatch("/dev/stdout" if name == STDOUT else name):
        number = int(found[1] or found[3] or (2 if found[2] else 1))
        if number == 1:
            sys.stdout.flush()  # what was printed comes first
        return os.dup(number)
    try:
        mode = os.lstat(name).st_mode
    except OSError:
        return None
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        return None
    flags = os.O_NOCTTY | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    stream = os.open(name, flags)  # fails where nobody reads a pipe
    os.set_blocking(stream, True)
    return stream


def _parts(content: Content) -> Iterable[bytes]:
    if isinstance(content, str):
        return (content.encode(),)
    return (content,) if isinstance(content, bytes) else content


def _refused(path: Path, why: str, todo: str) -> BfinfraError:
    return BfinfraError(Problem("the file can't be written", str(path), why, todo))
