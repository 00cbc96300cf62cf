"""What the package starts as a program, and each line that it builds for a shell: found in the source, and held
against a short list. Whoever adds one looks at it here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bfinfra

PACKAGE = Path(bfinfra.__file__).parent
STARTS = re.compile(
    r"subprocess\.(Popen|run|call|check_call|check_output|getoutput|getstatusoutput)"
    r"|os\.(system|popen|fork|forkpty|exec\w+|spawn\w+|posix_spawn\w*)|pty\.(spawn|fork)|runpy\.\w+"
    r"|asyncio\.(create_)?subprocess\w*|multiprocessing(\.\w+)*\.Process|ansible_runner(\.\w+)*\.(run\w*|init_\w+)|pexpect\.\w+"
    r"|concurrent\.futures(\.\w+)*\.ProcessPoolExecutor"
)
SHELL = re.compile(r"(/\S*/)?(ba|da|z|k|mk|c|tc|fi|a)?sh")
LINE = re.compile(
    r"(^|[\s;|&('\"])(sudo|ssh|eval|exec|(/\S*/)?(ba|da|z|k|c|tc)?sh) (?=\S|$)"
    r"|&&|\|\||2>|> ?/dev/|< ?/dev/|\$\(|\$\{?\w"
)
"""Words by which a text is a line for a shell, and no sentence."""

PROGRAMS = {
    "model/subprocesses.py subprocess.Popen": "the one place: a list of words, a path first, bounded",
    "sandbox/process.py subprocess.Popen": "this interpreter and bfinfra.sandbox; no code is shared with it",
    "backends/ansible/play.py ansible_runner.interface.init_runner": "a playbook of ours; see the plays' tests",
    "backends/ansible/bound.py runpy.run_module": "Ansible in a process of its own",
}
LINES = {
    "formats/shell.py shlex.quote": "a word that a person pastes: the writer of the format",
    "model/secret.py shlex.quote": "the name of a variable, for a person",
    "backends/ansible/play.py shlex.quote": "an argument of ansible-runner, which splits it",
    "backends/ansible/reading.py shlex.join": "commands in a script of /bin/sh on a machine, each word quoted",
    "backends/ansible/reading.py line": "the number of a command",
    "backends/ansible/connection.py shlex.join": "ssh's options for Ansible, which splits them with shlex",
    "backends/ansible/connection.py line": "the word that tells that a login succeeded, a constant",
    "backends/images/tools.py line": "for a person, each command quoted",
    "cli/sandbox/shown.py line": "for a person",
    "cli/schedule/systemd.py line": "for a person: the names of units, which are made of letters",
    "cli/shells.py line": "scripts of completion, made of bfinfra's own options",
    "kinds/cluster/workload/plugin.py shlex.join": "a container's command, which its webhook gives to bash",
    "kinds/cluster/workload/token.py shell": "two folders, constants",
    "kinds/cluster/workload/token.py line": "the same",
    "kinds/image/client_image/dockerfile.py line": "RUN of a Dockerfile: file names and users by their patterns",
    "render/privileges.py line": "for a person: govc's commands, each word quoted",
    "worlds.py line": "for a person, each command quoted",
    "sandbox/handout.py shlex.quote": "the sandbox's variables, for a shell",
    "sandbox/linux/shell.py shlex.join": "the sandbox runs no shell: it parses",
    "sandbox/kubernetes/bitfusion_log.py shlex.join": "what the real client writes into its log",
    "sandbox/kubernetes/controllers/gpu_operands.py line": "two programs of a pod, constants",
    "sandbox/kubernetes/programs/bitfusion_pods.py shell": "what the real webhook makes of a pod",
    **dict.fromkeys(
        (
            "cli/schema.py line",
            "kinds/cluster/network_path/kind.py line",
            "operator/crd.py line",
            "render/html_page.py line",
            "sandbox/kubernetes/controllers/gpu_cluster.py line",
            "sandbox/rest/cis_tasks.py line",
            "spec/site_text.py line",
        ),
        "no shell: a message, a comment of YAML, CEL, HTML, a query",
    ),
}


def names(tree: ast.AST) -> dict[str, str]:
    """What the imports of a file call things: name → dotted name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                found[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def dotted(node: ast.AST, imported: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, imported)}.{node.attr}"
    return imported.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes, without annotations, which run nothing."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from executed(each)


def texts(node: ast.AST) -> list[str] | None:
    """The constant parts of a text that is put together; None for anything else."""
    match node:
        case ast.JoinedStr(values=parts) if any(isinstance(each, ast.FormattedValue) for each in parts):
            return [str(each.value) for each in parts if isinstance(each, ast.Constant)]
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            ends = (node.left, node.right)
            return [
                each.value for each in ends if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format" | "join")):
            return [text]
    return None


def constant(node: ast.AST, tree: ast.Module) -> bool:
    """Whether a text is written in the source, here or as a constant of this module."""
    if isinstance(node, ast.Name):
        given = [
            each.value
            for each in tree.body
            if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == [node.id]
        ]
        return len(given) == 1 and constant(given[0], tree)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def found_in(source: str) -> set[str]:
    """The programs that a source starts, and what it builds for a shell."""
    tree = ast.parse(source)
    imported, found = names(tree), set()
    for node in executed(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node, imported)
            if STARTS.fullmatch(name) or name in ("shlex.join", "shlex.quote"):
                found.add(name)
        if isinstance(node, ast.keyword) and node.arg == "shell" and ast.unparse(node.value) != "False":
            found.add("shell=True")
        if isinstance(node, ast.List | ast.Tuple):
            for word, option, line in zip(node.elts, node.elts[1:], node.elts[2:], strict=False):
                if _begins_a_shell(word, option) and not constant(line, tree):
                    found.add("shell")
        if any(LINE.search(each) for each in texts(node) or ()):
            found.add("line")
    return found


def _begins_a_shell(word: ast.AST, option: ast.AST) -> bool:
    return (
        isinstance(word, ast.Constant)
        and isinstance(option, ast.Constant)
        and bool(SHELL.fullmatch(str(word.value)))
        and bool(re.fullmatch(r"-\w*c", str(option.value)))
    )


def test_each_program_that_is_started_and_each_line_for_a_shell_is_known():
    found = {
        f"{path.relative_to(PACKAGE)} {each}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for each in found_in(path.read_text())
    }
    assert found == {*PROGRAMS, *LINES}, "look at what is new, or take what is gone off the list"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import subprocess\nsubprocess.run(['ls'])", "subprocess.run"),
        ("import subprocess as s\nx = s.check_output", "subprocess.check_output"),
        ("from subprocess import Popen as P\nP(['ls'])", "subprocess.Popen"),
        ("def f():\n    import os\n    os.execvp('ls', [])", "os.execvp"),
        ("from os import system\nsystem('ls')", "os.system"),
        ("import asyncio\nasyncio.create_subprocess_shell('ls')", "asyncio.create_subprocess_shell"),
        ("import ansible_runner\nansible_runner.run()", "ansible_runner.run"),
        ("start(['ls'], shell=True)", "shell=True"),
        ("start(['ls'], shell=how)", "shell=True"),
        ("start(['/bin/sh', '-c', f'cat {name}'])", "shell"),
        ("start(('bash', '-lc', line))", "shell"),
        ("LINE = f'cat {name}'\nstart(['sh', '-c', LINE])", "shell"),
        ("run(f'sudo -n {name}')", "line"),
        ("run('cat ' + name + ' 2>&1')", "line"),
        ("run('ssh %s' % name)", "line"),
        ("run('{} && true'.format(name))", "line"),
        ("run(' && '.join(names))", "line"),
        ("import shlex\nrun(shlex.join(words))", "shlex.join"),
    ],
)
def test_one_that_is_new_is_found(source, what):
    assert what in found_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess\nprocess: subprocess.Popen[bytes] | None = None",
        "LINE = 'cat \"$1\"'\nstart(['sh', '-c', LINE, 'sh', name])",
        "text = f'the shell of {name} ends'",
        "start(['ls'], shell=False)",
    ],
)
def test_what_starts_nothing_is_none(source):
    assert found_in(source) == set()
