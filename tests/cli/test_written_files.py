"""What every option that names a file to be written makes of links, modes, full disks and other users."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import tempfile
from argparse import _SubParsersAction
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from bfinfra.app import import_object
from bfinfra.cli import context
from bfinfra.cli.main import main
from bfinfra.cli.parser import build
from bfinfra.kinds import spec
from bfinfra.model.files import FRESH
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Plan

NOBODY = 65534
UNIT = "bfinfra-drift-poc.service"
PLAN = "{folder}/poc.plan"


@dataclass(frozen=True)
class Writes:
    """How an option is used. `words`: {} is the file; `path`: the file, if it is not the one that is named."""

    words: str
    mode: int = 0o644
    path: str = "{}"
    early: bool = True
    """Whether a file that can't be written is found before a server is read."""

    def run(self, folder: Path, file: Path) -> int:
        named = file.parent if self.path != "{}" else file
        return main([each.format(named, folder=folder) for each in self.words.split()])


OPTIONS = {
    "plan --out": Writes("plan {folder}/site.yaml --out {}", 0o600),
    "plan --html": Writes("plan {folder}/site.yaml --html {}"),
    "show --html": Writes("show " + PLAN + " --html {}"),
    "drift --junit": Writes("drift {folder}/site.yaml --junit {}"),
    "drift --html": Writes("drift {folder}/site.yaml --html {}"),
    "watch --html": Writes("watch {folder}/site.yaml --once-settled --html {}"),
    "watch --metrics-file": Writes("watch {folder}/site.yaml --once-settled --metrics-file {}"),
    "apply --html": Writes("apply {folder}/site.yaml --yes --html {}"),
    "destroy --html": Writes("destroy {folder}/site.yaml --yes --html {}"),
    "adopt --html": Writes("adopt {folder}/site.yaml all --yes --html {}"),
    "token rotate --html": Writes("token rotate {folder}/site.yaml --yes --html {}"),
    "kubeconfig --out": Writes("kubeconfig {folder}/site.yaml tanzu_cluster/c --out {}", 0o600),
    "schema --out": Writes("schema --out {}"),
    "schedule systemd --out": Writes("schedule systemd {folder}/site.yaml --out {}", path=UNIT, early=False),
}
MADE_NEW = {"init FOLDER": "site.yaml", "demo FOLDER": "singapore-poc.yaml"}
OTHERWISE = {
    "operator job --result": "mounted by itself: tests/model/test_files.py, overwrite",
    "fmt FILE": "a user's own file: below",
    "init --world": "new, as init FOLDER",
    "operator job --own": "a folder made anew: tests/operator/test_declared.py",
}
READ = {
    *(
        "--overlay",
        "--values",
        "--world",
        "--rules",
        "--trust",
        "--kubeconfig",
        "operator job --site",
        "operator job --variables",
        "SITE",
    ),
    *(
        "init --sandbox",
        "show PLAN",
        "lint FILE",
        "ova inspect FILE|URL",
        "apply --site",
        "sandbox start --world",
    ),
}


def test_each_option_with_a_file_is_known_here() -> None:
    """So that an option which is added is tried with all that stands below."""
    found = set()
    for verb, parser in verbs(build()):
        for action in parser._actions:
            if str(action.metavar or "").split(".")[0] in {
                "FILE",
                "FOLDER",
                "PLAN",
                "FILE|URL",
                "FILE|SHA256",
            }:
                found.add((verb, (action.option_strings or [action.metavar])[-1]))
    unknown = {
        f"{verb} {name}"
        for verb, name in found
        if f"{verb} {name}" not in {*OPTIONS, *MADE_NEW, *OTHERWISE, *READ} and name not in READ
    }
    assert unknown == set(), "write them by bfinfra/model/files.py, and name them here"
    assert {*OPTIONS, *MADE_NEW} <= {f"{verb} {name}" for verb, name in found}


def verbs(parser, before=""):
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, inner in action.choices.items():
                yield f"{before}{name}", inner
                yield from verbs(inner, f"{before}{name} ")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site without resources, which needs no server, and a saved plan of it."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("bfinfra.app.kubeconfig.kubeconfig", lambda *_, **__: "kind: Config\n" * 10)
    monkeypatch.setattr("bfinfra.app.apply.apply", lambda *_, **__: Outcome(Plan("poc", ()), {}, 0.0))
    monkeypatch.setattr("bfinfra.spec.schema.schema", lambda: dict.fromkeys("abcdefghijklmnop"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text("site: poc\n")
    assert main(["plan", str(tmp_path / "site.yaml"), "--out", str(tmp_path / "poc.plan")]) == 0
    (tmp_path / "there").mkdir()
    return tmp_path


@pytest.fixture(params=OPTIONS)
def option(request) -> Writes:
    return OPTIONS[request.param]


@pytest.fixture
def file(option: Writes, folder: Path) -> Path:
    """Where this option writes."""
    name = "out.prom" if option.path == "{}" else option.path
    return folder / "there" / name


@pytest.fixture
def unasked(option: Writes, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let it fail the test to read the site, as what comes before any server."""

    def set_up() -> None:
        if option.early:
            monkeypatch.setattr(context, "site", lambda *_: pytest.fail("the site was read"))
            monkeypatch.setattr(
                "bfinfra.app.saved.SavedPlan.read", lambda *_: pytest.fail("the plan was read")
            )

    return set_up


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def full(size: int = 16) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def left(path: Path) -> list[str]:
    return [each.name for each in path.parent.iterdir() if FRESH in each.name]


def test_a_new_file_has_its_mode_whatever_the_umask(option, file, folder) -> None:
    found = []
    for bits in (0o000, 0o022, 0o077):
        file.unlink(missing_ok=True)
        with umask(bits):
            assert option.run(folder, file) == 0
        found.append(mode(file))
    assert found == [option.mode, option.mode, 0o600]
    assert left(file) == []


def test_a_narrower_mode_stays_and_a_wider_one_goes(option, file, folder) -> None:
    found = []
    for before in (0o600, 0o640, 0o666):
        file.write_text("before")
        file.chmod(before)
        with umask(0):
            assert option.run(folder, file) == 0
        found.append(mode(file))
        assert file.read_text() != "before"
    assert found == [0o600, 0o640 & option.mode, option.mode]


def test_a_file_that_the_command_reads_is_not_written(option, folder, unasked, capsys) -> None:
    """Also under another name: below a link to its folder."""
    read = [
        Path(each.format(folder=folder)) for each in option.words.split() if each[0] == "{" and each != "{}"
    ]
    if option.path != "{}" or not read:
        return  # they write into a folder, under names that no site has, or read nothing
    (folder / "link").symlink_to(folder)
    unasked()
    before = read[0].read_bytes()
    assert option.run(folder, folder / "link" / read[0].name) == 1
    assert f"it is {read[0]} of this command\n  next: name another file" in capsys.readouterr().err
    assert read[0].read_bytes() == before


@pytest.mark.parametrize("verb", ["drift --junit {} --html {}", "watch --html {} --metrics-file {}"])
def test_two_files_of_a_command_are_two(verb, folder, capsys) -> None:
    assert main([*verb.format("x", "./x").split(), str(folder / "site.yaml")]) == 1
    assert "name another file" in capsys.readouterr().err
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("link", "it is a link"),
        ("dangling link", "it is a link"),
        ("folder", "it is a folder"),
        ("missing folder", "there is no folder"),
        ("pipe that nobody reads", ""),
    ],
)
def test_what_cant_be_written_is_refused_by_name_before_anything_is_read(
    how, why, option, file, folder, unasked, capsys
) -> None:
    (folder / "precious").write_text("before")
    {
        "link": lambda: file.symlink_to(folder / "precious"),
        "dangling link": lambda: file.symlink_to(folder / "nowhere"),
        "folder": file.mkdir,
        "missing folder": file.parent.rmdir,
        "pipe that nobody reads": lambda: os.mkfifo(file),
    }[how]()
    unasked()
    assert option.run(folder, file) == 1
    error = capsys.readouterr().err
    assert f"{file}: error: the file can't be written" in error or f"{file.parent}/" in error
    assert why in error
    assert "next: " in error
    assert "wrote" not in error
    assert (folder / "precious").read_text() == "before"
    assert not (folder / "nowhere").exists()


def test_a_full_disk_is_found_before_anything_is_read_and_leaves_the_old_file(
    option, file, folder, unasked, capsys
) -> None:
    file.write_text("before")
    unasked()
    with full():
        assert option.run(folder, file) == 1
    assert "next: free space there, then run again" in capsys.readouterr().err
    assert file.read_text() == "before"
    assert left(file) == []


def test_a_disk_that_fills_meanwhile_leaves_the_old_file_and_all_that_is_printed(
    option, file, folder, monkeypatch, capsys
) -> None:
    option.run(folder, file)
    whole = capsys.readouterr().out
    file.write_text("before")
    monkeypatch.setattr(context, "can_write", lambda *_: None)
    with full(512 if option.words.startswith("watch") else 16):  # the journal's folder has a record, too
        code = option.run(folder, file)
    out, error = capsys.readouterr()
    assert (code == 1) != option.words.startswith("watch"), "a watch tries again with its next report"
    assert f"{file}: " in error
    assert "free space there, then run again" in error
    assert out.splitlines()[:1] == whole.splitlines()[:1]
    assert file.read_text() == "before"
    assert left(file) == []


def test_in_a_folder_as_tmp_anothers_file_or_link_is_refused(option, file, folder, capsys) -> None:
    if os.geteuid():
        pytest.fail("run as root, as .ci/run does: the files of another user are made here", pytrace=False)
    public = Path(tempfile.mkdtemp())
    try:
        public.chmod(0o1777)
        trap = public / file.name
        trap.write_text("trap")
        os.chown(trap, NOBODY, NOBODY)
        assert option.run(folder, trap) == 1
        assert "it belongs to somebody else, and everybody may write to" in capsys.readouterr().err
        assert (trap.read_text(), trap.stat().st_uid) == ("trap", NOBODY)
        (public / "way").symlink_to(file.parent)
        os.lchown(public / "way", NOBODY, NOBODY)
        assert option.run(folder, public / "way" / file.name) == 1
        assert f"{public}/way: error" in (error := capsys.readouterr().err)
        assert "it is a link of somebody else" in error
        assert not file.exists()
    finally:
        shutil.rmtree(public)


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_gets_it(name, option, folder, capfd) -> None:
    if option.path != "{}" or "metrics-file" in option.words:  # a folder, and a name that ends in .prom
        assert main(option.words.format(name, folder=folder).split()) == 1
        return
    assert option.run(folder, Path(name)) == 0
    assert len(capfd.readouterr().out) > 100
    assert not Path("-").exists()


def test_drift_is_remembered_and_the_other_report_written_where_one_cant_be(
    folder, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(context, "can_write", lambda *_: None)
    words = [
        "drift",
        str(folder / "site.yaml"),
        "--junit",
        "/nowhere/j.xml",
        "--html",
        str(folder / "page.html"),
    ]
    assert main(words) == 1
    out, error = capsys.readouterr()
    assert "no drift" in out
    assert "/nowhere/j.xml: error: the file can't be written" in error
    assert (folder / "page.html").exists()
    assert (folder / "state/bfinfra/poc/drift.json").exists()


def test_a_plan_that_cant_be_saved_is_shown_all_the_same(folder, monkeypatch, capsys) -> None:
    monkeypatch.setattr(context, "can_write", lambda *_: None)
    words = ["plan", str(folder / "site.yaml"), "--out", "/nowhere/p", "--html", "/nowhere/h"]
    assert main(words) == 1
    out, error = capsys.readouterr()
    assert "nothing to do" in out
    assert "/nowhere/p: error" in error
    assert "/nowhere/h: error" in error


# Files that are new.


@pytest.mark.parametrize("bits", [0o000, 0o077])
@pytest.mark.parametrize("verb", [each.split()[0] for each in MADE_NEW])
def test_new_files_and_folders_are_never_wider_than_readable(verb, bits, folder, monkeypatch) -> None:
    monkeypatch.setattr("bfinfra.cli.execute.execute", lambda *_, **__: 0)
    with umask(bits):
        assert main([verb, str(folder / "a/b")]) == 0
    made = [folder / "a", *(folder / "a").rglob("*")]
    assert len(made) > 3
    assert {mode(each) & ~(0o755 if each.is_dir() else 0o644) for each in made} == {0}


@pytest.mark.parametrize(("verb", "name"), [(each.split()[0], name) for each, name in MADE_NEW.items()])
@pytest.mark.parametrize("target", ["precious", "nowhere"])
def test_a_new_file_is_never_written_through_a_link(verb, name, target, folder, monkeypatch, capsys) -> None:
    monkeypatch.setattr("bfinfra.cli.execute.execute", lambda *_, **__: 0)
    (folder / "precious").write_text("before")
    (folder / "there" / name).symlink_to(folder / target)
    code = main([verb, str(folder / "there")])
    if verb == "init" or target == "nowhere":
        assert code == 1
        assert f"{folder}/there/{name}" in (error := capsys.readouterr().err)
        assert "exists already" in error
    assert (folder / "precious").read_text() == "before"
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("verb", [each.split()[0] for each in MADE_NEW])
def test_new_files_that_dont_fit_leave_nothing_half(verb, folder, capsys) -> None:
    with full():
        assert main([verb, str(folder / "there")]) == 1
    assert "free space there" in capsys.readouterr().err
    assert [each for each in (folder / "there").rglob("*") if each.is_file()] == []


# A user's own file.

UNTIDY = "site:   poc   # ours\nvcenter: {server:   vc}\n"


def formatted(file: Path) -> bool:
    return main(["fmt", str(file)]) == 0


def imported(file: Path) -> bool:
    return main(["import", str(file), "vm_class/small"]) == 0


@pytest.fixture(params=[formatted, imported])
def change(request, monkeypatch):
    """fmt, and import of an object that no server is asked for."""
    small = spec("vm_class").model_validate({"cpus": 2, "memory": "4GiB"})
    described = SimpleNamespace(spec=small, description=SimpleNamespace(fill_in={}))
    monkeypatch.setattr(import_object, "describe_one", lambda *_, **__: described)
    return request.param


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664])
def test_a_site_keeps_its_mode_and_its_link(change, before, folder) -> None:
    (file := folder / "real.yaml").write_text(UNTIDY)
    file.chmod(before)
    (folder / "link.yaml").symlink_to("real.yaml")
    for bits in (0o000, 0o077):
        file.write_text(UNTIDY)
        with umask(bits):
            assert change(folder / "link.yaml")
        assert file.read_text() != UNTIDY
        assert mode(file) == before
    assert (folder / "link.yaml").is_symlink()


def test_a_site_that_cant_be_written_is_as_before(change, folder, capsys) -> None:
    (file := folder / "real.yaml").write_text(UNTIDY)
    with full():
        assert not change(file)
    assert "next: free space there" in capsys.readouterr().err
    assert file.read_text() == UNTIDY
    assert left(file) == []


def test_in_a_folder_as_tmp_anothers_site_is_left_alone(change, capsys) -> None:
    public = Path(tempfile.mkdtemp())
    try:
        public.chmod(0o1777)
        (file := public / "site.yaml").write_text(UNTIDY)
        os.chown(file, NOBODY, NOBODY)
        assert not change(file)
        assert "it belongs to somebody else" in capsys.readouterr().err
        assert file.read_text() == UNTIDY
    finally:
        shutil.rmtree(public)
