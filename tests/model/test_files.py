"""Files are written whole or not at all, not through another's link, and for no more people than meant."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import termios
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bfinfra.model import files
from bfinfra.model.errors import BfinfraError

NOBODY = 65534
WAYS = {
    "report": files.write_whole,
    "private": lambda path, content: files.write_whole(path, content, files.PRIVATE),
    "named": files.write_named,
    "site": files.edit,
}


@pytest.fixture(params=WAYS)
def write(request):
    return WAYS[request.param]


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "folder" / "f"
    found.parent.mkdir()
    found.write_text("before")
    return found


@contextmanager
def umask(bits):
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def full(size=8):
    """No file may grow beyond this size: what a quota says, and nearly what a full disk says."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def alone(path):
    """Nothing else is left in the folder."""
    return [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_is_replaced_by_one_with_a_new_content(write, file):
    with file.open() as held:
        write(file, "after: é")
        assert held.read() == "before"
    assert file.read_bytes() == "after: é".encode()
    assert alone(file)


@pytest.mark.parametrize("bits", [0o000, 0o022, 0o077, 0o777])
def test_a_new_file_is_never_wider_than_its_mode_whatever_the_umask(bits, file):
    file.unlink()
    with umask(bits):
        files.write_whole(file, "report")
        files.write_whole(private := file.with_name("private"), "secret", files.PRIVATE)
        files.create(new := file.with_name("new"), "site")
        files.write_whole(program := file.with_name("program"), "#!/bin/sh", 0o755)
        files.make_folder(deep := file.parent / "a" / "b")
    readable = 0o644 & ~bits | 0o600
    assert [mode(file), mode(new)] == [readable, readable]
    assert mode(private) == 0o600
    assert mode(program) == 0o755 & ~bits | 0o700
    if bits != 0o777:
        assert mode(deep) == mode(deep.parent) == 0o755 & ~bits


@pytest.mark.parametrize(
    ("old", "report", "private", "site", "program"),
    [
        (0o666, 0o644, 0o600, 0o666, 0o755),
        (0o664, 0o644, 0o600, 0o664, 0o755),
        (0o640, 0o640, 0o600, 0o640, 0o750),
        (0o600, 0o600, 0o600, 0o600, 0o700),
        (0o400, 0o400, 0o400, 0o400, 0o500),
        (0o755, 0o644, 0o600, 0o755, 0o755),
        (0o751, 0o640, 0o600, 0o751, 0o750),
    ],
)
def test_a_narrower_mode_of_the_old_file_stays(old, report, private, site, program, file):
    found = {}
    for bits in (0o000, 0o077):
        for name, do in {
            **WAYS,
            "program": lambda path, content: files.write_whole(path, content, 0o755),
        }.items():
            file.chmod(old)
            with umask(bits):
                do(file, "after")
            found.setdefault(name, set()).add(mode(file))
    assert found == {
        "report": {report},
        "named": {report},
        "private": {private},
        "site": {site},
        "program": {program},
    }


@pytest.mark.parametrize("how", ["link", "dangling", "folder", "pipe", "socket name"])
def test_what_is_no_regular_file_is_refused_by_name(how, file):
    target = file.with_name("precious")
    file.rename(target)
    {
        "link": lambda: file.symlink_to(target),
        "dangling": lambda: file.symlink_to("nowhere"),
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "socket name": lambda: os.mknod(file, stat.S_IFSOCK | 0o600),
    }[how]()
    before = file.lstat()
    for do in (files.write_whole, files.create):
        with pytest.raises(BfinfraError) as raised:
            do(file, "after")
        assert raised.value.problems[0].where == str(file)
        assert raised.value.problems[0].next
    assert file.lstat() == before
    assert target.read_text() == "before"
    assert sorted(each.name for each in file.parent.iterdir()) == ["f", "precious"]


def test_a_site_is_written_behind_the_link_that_its_user_made(file):
    link = file.with_name("link")
    link.symlink_to(file.name)
    files.edit(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"


def test_a_folder_behind_a_link_of_ones_own_is_a_folder(write, file, tmp_path):
    (tmp_path / "link").symlink_to("folder")
    write(tmp_path / "link" / "f", "after")
    assert file.read_text() == "after"


def test_a_second_name_of_a_file_keeps_the_old_content(write, file, tmp_path):
    os.link(file, tmp_path / "copy")
    write(file, "after")
    assert (file.read_text(), (tmp_path / "copy").read_text()) == ("after", "before")


def test_what_the_disk_refuses_leaves_the_old_file_and_nothing_else(write, file):
    with full(), pytest.raises(BfinfraError, match=f"{file}: .*; File too large; free space there"):
        write(file, "after" * 10)
    assert file.read_text() == "before"
    assert alone(file)


def test_what_cant_be_made_up_to_its_end_leaves_the_old_file_and_nothing_else(file):
    def parts():
        yield b"half"
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        files.write_whole(file, parts())
    with suppress(KeyboardInterrupt):
        files.create(file.with_name("new"), parts())
    assert file.read_text() == "before"
    assert alone(file)


def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_killed_process_leaves_the_old_file_whole(write, file, call, monkeypatch):
    child = os.fork()
    if not child:
        monkeypatch.setattr(Path if call == "replace" else os, call, killed)
        write(file, "after")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert file.read_text() == "before"
    write(file, "after")
    assert file.read_text() == "after"


def test_what_replaces_a_file_is_on_the_disk_before_the_old_one_goes(file, monkeypatch):
    done = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("on the disk"), sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (done.append("replaced"), replace(path, to)))
    files.write_whole(file, "after")
    assert done == ["on the disk", "replaced"]
    files.write_whole(file.with_name("new"), "nothing to lose")
    assert done[2:] == ["replaced"]


def test_a_new_file_never_replaces_another(file, monkeypatch):
    with pytest.raises(BfinfraError, match="it exists already"):
        files.create(file, "after")
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))  # as a file system without hard links does
    with pytest.raises(BfinfraError, match="File exists"):
        files.create(file, "after")
    files.create(file.with_name("new"), "new")
    assert (file.read_text(), file.with_name("new").read_text()) == ("before", "new")
    assert sorted(each.name for each in file.parent.iterdir()) == ["f", "new"]


def refusing(number):
    def do(*_, **__):
        raise OSError(number, os.strerror(number))

    return do


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.ENOSPC, "free space there"),
        (errno.EDQUOT, "free space there"),
        (errno.EBUSY, "it is mounted by itself: mount its folder instead"),
        (errno.EACCES, "give yourself permission to write to "),
        (errno.EROFS, "give yourself permission to write to "),
    ],
)
def test_a_refusal_says_what_to_do_next_and_never_names_the_temporary_file(number, todo, file, monkeypatch):
    monkeypatch.setattr(Path, "replace", refusing(number))
    with pytest.raises(BfinfraError) as raised:
        files.write_whole(file, "after")
    (problem,) = raised.value.problems
    assert problem.what == "the file can't be written"
    assert (problem.where, problem.why) == (str(file), os.strerror(number))
    assert problem.next.startswith(todo)
    assert files.FRESH not in str(problem)
    assert alone(file)


def test_links_in_a_circle_are_an_error(write, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(BfinfraError) as refused:
        write(tmp_path / "a" / "f", "after")
    assert str(refused.value) == (
        f"{tmp_path}/a/f: the file can't be written; Too many levels of symbolic links; remove one of the "
        "links, or name a file elsewhere"
    )


def test_as_many_links_are_followed_as_linux_follows(write, file, tmp_path):
    way = file.parent
    for number in range(files.HOPS):
        (link := tmp_path / f"link{number}").symlink_to(way)
        way = link
    write(way / "f", "after")
    assert file.read_text() == "after"


def test_a_missing_folder_is_named_with_how_to_make_it(tmp_path):
    with pytest.raises(BfinfraError, match=r"there is no folder .*/nowhere; mkdir -p .*/nowhere"):
        files.write_whole(tmp_path / "nowhere" / "f", "after")


def test_only_what_is_there_can_be_edited(tmp_path: Path) -> None:
    with pytest.raises(BfinfraError, match=r"nowhere\.yaml: .*No such file"):
        files.edit(tmp_path / "nowhere.yaml", "after")
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_is_edited_lends_nobody_its_owners_rights(file: Path) -> None:
    file.chmod(0o4755)
    files.edit(file, "after")
    assert mode(file) == 0o755


def test_the_check_before_a_run_holds_nothing_open(tmp_path: Path) -> None:
    held = lambda: len([*Path("/proc/self/fd").iterdir()])  # noqa: E731 - counted twice
    before = held()
    for name in ("-", "/dev/null", str(tmp_path / "f")):
        files.check_named(name)
    assert held() == before


def test_the_file_that_the_disk_refuses_is_named_and_not_the_one_that_was_asked_for(tmp_path: Path) -> None:
    def refuse() -> None:
        raise OSError(errno.EACCES, "Permission denied", str(tmp_path / "other"))

    with (
        pytest.raises(BfinfraError, match=r"/other: the file can't be written; Permission denied"),
        files.reported(tmp_path / "f"),
    ):
        refuse()
    with (
        pytest.raises(BfinfraError, match=r"/f: the file can't be written; OSError"),
        files.reported(tmp_path / "f"),
    ):
        raise OSError


def test_folders_are_made_for_no_more_people_than_meant_and_those_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    files.make_folder(tmp_path / "a/b/c", 0o700)
    files.make_folder(tmp_path / "a/b/c", 0o700)
    assert [mode(tmp_path / each) for each in ("a", "a/b", "a/b/c")] == [0o755, 0o700, 0o700]


# Streams, devices and pipes: what a user named is written to as it is.


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_standard_stream_gets_the_text_behind_what_was_printed(name, tmp_path):
    code = f"from bfinfra.model.files import *; print('first'); check_named({name!r}); write_named({name!r}, 'then')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "first\nthen"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_shells_process_substitution_gets_it(tmp_path):
    code = "import sys; from bfinfra.model.files import *; write_named(sys.argv[1], b'whole' * 100_000)"
    line = f'"{sys.executable}" -c "{code}" >(wc -c > count; mv count counted) && until [ -e counted ]; do :; done'
    subprocess.run(["bash", "-c", line], check=True, cwd=tmp_path)
    assert (tmp_path / "counted").read_text().strip() == "500000"


def test_a_device_gets_it_and_a_full_one_says_so(tmp_path):
    files.write_named("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(BfinfraError, match=r"/dev/full: .*; No space left on device; free space there"):
        files.write_named("/dev/full", "text")


def test_a_pipe_that_nobody_reads_is_said_at_once_instead_of_waiting_for_ever(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    for do in (files.check_named, lambda name: files.write_named(name, "text")):
        with pytest.raises(BfinfraError, match="start what reads it first"):
            do(str(pipe))
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_named(str(pipe), "text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)


def test_who_reads_a_pipe_slowly_gets_all_of_it(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    waiting = lambda: int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder)  # noqa: E731 - asked often

    def read() -> int:
        while waiting() < 1 << 16:  # nothing is read before the pipe is full
            pass
        with os.fdopen(reader, "rb") as stream:
            return len(stream.read())

    with ThreadPoolExecutor(1) as pool:
        size = pool.submit(read)
        files.write_named(str(pipe), bytes(1 << 20))
        assert size.result() == 1 << 20


@pytest.mark.parametrize(
    ("name", "out", "err"),
    [
        *[(name, "firstthen", "") for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")],
        *[(name, "first", "then") for name in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2")],
    ],
)
def test_a_standard_stream_of_this_process_gets_it_behind_what_was_printed(
    name, out, err, capfd, monkeypatch
):
    with os.fdopen(os.dup(1), "w") as held:
        monkeypatch.setattr(sys, "stdout", held)
        held.write("first")
        files.write_named(name, "then")
        held.flush()
        monkeypatch.undo()
    assert capfd.readouterr() == (out, err)


def test_a_file_that_is_mounted_by_itself_is_written_as_it_is_and_never_through_a_link(file):
    number = file.stat().st_ino
    files.overwrite(file, "after")
    assert (file.read_text(), file.stat().st_ino) == ("after", number)
    file.with_name("link").symlink_to("f")
    with pytest.raises(BfinfraError):
        files.overwrite(file.with_name("link"), "more")
    assert file.read_text() == "after"
    with umask(0):
        files.overwrite(new := file.with_name("new"), "new")
    assert (new.read_text(), mode(new)) == ("new", 0o644)
    os.mkfifo(file.with_name("pipe"))
    with pytest.raises(BfinfraError, match="start what reads it first"):
        files.overwrite(file.with_name("pipe"), "more")


def test_the_check_before_a_run_leaves_nothing_and_finds_what_the_writing_would(file):
    files.check_named(str(file))
    files.check_named(str(file.with_name("new")))
    assert (file.read_text(), alone(file)) == ("before", True)
    with full(), pytest.raises(BfinfraError, match="free space there"):
        files.check_named(str(file))
    with pytest.raises(BfinfraError, match="there is no folder"):
        files.check_named("/nowhere/f")
    with pytest.raises(BfinfraError, match="Bad file descriptor"):
        files.check_named("/dev/fd/999")
    assert alone(file)


# Other users of the machine. These need an account of another user: root's tests take nobody's.


@contextmanager
def as_nobody():
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def public():
    """A folder as /tmp, which everybody reaches."""
    if os.geteuid():
        pytest.fail("run as root, as .ci/run does: the files of another user are made here", pytrace=False)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def test_in_a_folder_as_tmp_anothers_file_is_refused_and_left_alone(public, write):
    file = public / "f"
    with as_nobody():
        file.write_text("trap")
    with pytest.raises(BfinfraError, match="it belongs to somebody else, and everybody may write to"):
        write(file, "after")
    with pytest.raises(BfinfraError, match="it belongs to somebody else"):
        files.check_named(str(file))
    assert (file.read_text(), file.stat().st_uid, alone(file)) == ("trap", NOBODY, True)
    os.chown(file, 0, 0)
    with as_nobody(), pytest.raises(BfinfraError, match="it belongs to somebody else"):
        write(file, "after")
    write(file, "after")
    assert file.read_text() == "after"


@pytest.mark.parametrize("depth", [1, 2])
def test_in_a_folder_as_tmp_no_link_of_another_is_a_way(public, write, file, depth):
    with as_nobody():
        (public / "trap").symlink_to(file.parent)
    (public / "mine").symlink_to("trap")
    way = public / ("trap" if depth == 1 else "mine")
    with pytest.raises(BfinfraError, match=f"{public}/trap: .*it is a link of somebody else"):
        write(way / "f", "after")
    with pytest.raises(BfinfraError, match="it is a link of somebody else"):
        files.create(way / "new", "after")
    assert (file.read_text(), alone(file)) == ("before", True)
    os.lchown(public / "trap", 0, 0)
    write(way / "f", "after")
    assert file.read_text() == "after"


def test_roots_writing_leaves_a_site_and_a_report_to_their_owner_and_takes_what_is_private(public):
    public.chmod(0o755)
    found = {}
    for name, do in WAYS.items():
        (public / name).write_text("before")
        os.chown(public / name, NOBODY, NOBODY)
        do(public / name, "after")
        found[name] = (public / name).stat().st_uid
    assert found == {"report": NOBODY, "named": NOBODY, "site": NOBODY, "private": 0}


def test_who_cant_leave_a_file_to_its_group_gives_that_groups_rights_to_nobody(public):
    public.chmod(0o777)
    file = public / "f"
    file.write_text("before")
    file.chmod(0o664)
    with as_nobody():
        files.edit(file, "after")
    found = file.stat()
    assert (file.read_text(), found.st_uid, found.st_gid, mode(file)) == ("after", NOBODY, NOBODY, 0o644)


def test_what_cant_be_left_to_its_owner_is_left_to_its_group(public, monkeypatch):
    given = []

    def fchown(_, user, group):
        if user != -1:
            raise PermissionError
        given.append(group)

    monkeypatch.setattr(os, "fchown", fchown)
    file = public / "f"
    public.chmod(0o755)
    file.write_text("before")
    file.chmod(0o664)
    os.chown(file, NOBODY, NOBODY)
    files.edit(file, "after")
    assert (given, mode(file)) == ([NOBODY], 0o664)


def test_where_files_have_no_modes_only_what_is_private_is_refused(file, monkeypatch):
    monkeypatch.setattr(os, "fchmod", refusing(errno.EPERM))
    with umask(0o277):
        files.write_whole(file, "after")
        with pytest.raises(BfinfraError, match="Operation not permitted"):
            files.write_whole(file.with_name("new"), "secret", files.PRIVATE)
    assert file.read_text() == "after"
    assert alone(file)


def test_the_access_list_of_a_site_stays_and_none_comes_to_a_private_file(public):
    public.chmod(0o755)
    entries = (1, 7, -1), (2, 6, NOBODY), (4, 4, -1), (0x10, 6, -1), (0x20, 4, -1)
    access = b"\x02\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, bits, who in entries
    )
    for name in ("site", "private"):
        (public / name).write_text("before")
        os.setxattr(public / name, "system.posix_acl_access", access)
    WAYS["site"](public / "site", "after")
    WAYS["private"](public / "private", "after")
    assert os.getxattr(public / "site", "system.posix_acl_access") == access
    assert "system.posix_acl_access" not in os.listxattr(public / "private")
    assert mode(public / "private") == 0o600


def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(public):
    """On a file system of its own, of 16 pages."""
    code = """
from pathlib import Path
from bfinfra.model import files
from bfinfra.model.errors import BfinfraError
file = Path("disk/f")
files.write_whole(file, "before")
Path("disk/ballast").write_bytes(bytes(12 * 4096))
for write in (files.write_whole, files.edit, files.create, lambda path, _: files.check_named(str(path))):
    try:
        if write is files.create: path = Path("disk/new")
        elif write is files.write_whole or write is files.edit: path = file
        else: Path("disk/more").write_bytes(bytes(3 * 4096)); path = file
        write(path, "x" * 4096 * 8)
    except BfinfraError as error:
        print(error.problems[0].why, "|", error.problems[0].next)
print(file.read_text(), sorted(each.name for each in Path("disk").iterdir()))
"""
    (public / "disk").mkdir()
    line = f"mount -t tmpfs -o size={16 * 4096} none disk && exec {sys.executable} -c '{code}'"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", line], capture_output=True, text=True, check=False, cwd=public
    )
    assert done.stdout.splitlines() == [
        *["No space left on device | free space there, then run again"] * 4,
        "before ['ballast', 'f', 'more']",
    ], done.stdout + done.stderr
