"""bfinfra/model/files.py writes every file, and no other module does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "bfinfra"
WRITERS = {"model/files.py": "the one place"}
ELSEWHERE = {
    ("model/private.py", "os.open"): "a journal is appended to, a lock is held",
    (
        "engine/journal.py",
        "rename",
    ): "the files of an earlier release, from a folder of its own into one below it",
    ("cli/pipes.py", "os.open"): "the null device",
    ("cli/pipes.py", "os.fdopen"): "the null device",
    ("backends/ansible/folder.py", "os.mkfifo"): "a pipe, so that a secret is in no file",
    ("backends/ansible/folder.py", "os.open"): "the same",
    ("backends/ansible/folder.py", "os.fdopen"): "the same",
    ("backends/ansible/connection.py", "os.mkfifo"): "the same, for ssh",
    ("backends/ansible/connection.py", "os.open"): "the same",
    (
        "backends/ansible/play.py",
        "symlink_to",
    ): "to what a play takes along, under a neutral name, in a run's own folder",
    ("operator/declared.py", "os.open"): "to read, below an open folder",
    (
        "backends/ansible/bound.py",
        "symlink_to",
    ): "to packed modules, where Ansible looks for them, in a run's own folder",
}
"""(file, call) → why it writes by itself."""

ALWAYS = {
    *("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "write_to_textfile", "extractall"),
    *("mkstemp", "NamedTemporaryFile", "TemporaryFile", "SpooledTemporaryFile", "FileHandler"),
    *("copyfile", "copy2", "copytree", "copyfileobj", "mkfifo", "mknod"),
}
OF_A_MODULE = {
    "os": {"rename", "renames", "replace", "link", "symlink", "makedirs", "truncate"},
    "shutil": {"copy", "move", "make_archive", "unpack_archive"},
}
READING = {"r", "rb", "rt"}


def writes(call):
    """The name of a call that writes a file or makes a folder that others may use; "" of any other."""
    at = call.func
    name = at.attr if isinstance(at, ast.Attribute) else at.id if isinstance(at, ast.Name) else ""
    module = at.value.id if isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name) else ""
    by_itself = isinstance(at, ast.Name)
    full = f"{module}.{name}" if module in (*OF_A_MODULE, "tarfile", "zipfile") else name
    if name in ALWAYS or name in OF_A_MODULE.get(module, ()):
        return full
    if full == "os.open":
        flags = ast.unparse(call.args[1])
        return full if "O_RDONLY" not in flags else ""
    if name in ("open", "fdopen", "ZipFile", "TarFile"):
        place = 0 if isinstance(at, ast.Attribute) and module not in ("os", "tarfile", "zipfile", "io") else 1
        named = next((each.value for each in call.keywords if each.arg == "mode"), None)
        mode = named or (call.args[place] if len(call.args) > place else None)
        if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
            return full if set(mode.value) & set("wax+") else ""
        return full if name == "fdopen" else ""
    if name in ("replace", "rename") and not by_itself and len(call.args) == 1 and not call.keywords:
        return name  # of a Path: texts and records are replaced by other arguments
    if name == "mkdir" and not any(each.arg == "mode" for each in call.keywords):
        return name
    return ""


def found(text):
    return [
        (call.lineno, name)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and (name := writes(call))
    ]


def modules():
    """Those of the sandbox are another process, with a folder of its own, and share no code."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("sandbox/") and name not in WRITERS:
            yield name, path


def test_no_other_module_writes_files():
    wrong, used = [], set()
    for name, path in modules():
        for line, call in found(path.read_text()):
            if (name, call) in ELSEWHERE:
                used.add((name, call))
            else:
                wrong.append(f"bfinfra/{name}:{line}: {call}: write it by bfinfra/model/files.py")
    assert wrong == []
    assert set(ELSEWHERE) - used == set(), "these write no more"


@pytest.mark.parametrize(
    "line",
    [
        "Path(name).write_text(text)",
        "(folder / name).write_bytes(data)",
        "path.touch(mode=0o600)",
        "open(name, 'w')",
        "open(name, mode='ab')",
        "path.open('x', encoding='utf-8')",
        "path.open(mode='r+')",
        "os.open(name, os.O_WRONLY | os.O_CREAT)",
        "os.open(name, flags)",
        "os.fdopen(handle, 'wb')",
        "os.fdopen(handle, kind)",
        "os.replace(a, b)",
        "fresh.replace(path)",
        "path.rename(other)",
        "shutil.copy(a, b)",
        "shutil.copyfile(a, b)",
        "tempfile.NamedTemporaryFile(dir=here)",
        "tempfile.mkstemp()",
        "tarfile.open(name, 'w:gz')",
        "archive.extractall(folder)",
        "zipfile.ZipFile(name, 'w')",
        "folder.mkdir(parents=True, exist_ok=True)",
        "os.makedirs(folder)",
        "path.symlink_to(other)",
    ],
)
def test_what_writes_is_found(line):
    assert len(found(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "open(name)",
        "path.open('rb')",
        "os.open(name, os.O_RDONLY | os.O_CLOEXEC)",
        "os.fdopen(handle, 'rb')",
        "tarfile.open(fileobj=data, mode='r:gz')",
        "text.replace('a', 'b')",
        "replace(record, field=1)",
        "record.replace(field=1)",
        "folder.mkdir(mode=0o700)",
        "session.open()",
        "names.copy()",
    ],
)
def test_what_only_reads_is_not(line):
    assert found(line) == []
