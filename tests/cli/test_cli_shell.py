"""The command line as a shell sees it: start-up, closed pipes, completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bfinfra.cli import main
from bfinfra.cli.parser import build
from bfinfra.cli.shells import commands

pytestmark = pytest.mark.thorough

HEAVY = (
    "pydantic",
    "rich",
    "yaml",
    "pyVmomi",
    "httpx2",
    "lightkube",
    "lxml",
    "cryptography",
    "importlib.metadata",
)


@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], ["apply", "--help"], ["apply"], ["sandbox", "--help"]]
)
def test_start_up_imports_nothing_heavy(argv):
    code = (
        f"import sys; from bfinfra.cli import main; main({argv!r}); import json; print(); "
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert [name for name in HEAVY if name in loaded] == []


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "bfinfra", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bfinfra ")


def test_a_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "bfinfra", "completion", "fish"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("closed", "code", "output"),
    [(">&-", 1, "the output is lost: standard output is closed\n"), ("2>&-", 0, ""), (">&- 2>&-", 1, "")],
)
def test_output_that_is_lost_is_an_error(closed, code, output):
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -m bfinfra completion fish {closed}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, output)


def test_without_a_standard_input_nobody_can_confirm(tmp_path):
    (tmp_path / "site.yaml").write_text("site: poc\n")
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -m bfinfra destroy site.yaml <&-"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, "there is no terminal to ask on" in done.stderr) == (1, True)


def test_a_full_disk_is_reported():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bfinfra", "completion", "fish"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: No space left on device")


def test_libraries_tidy_up_behind_themselves():
    code = "import atexit; from bfinfra.cli import program; atexit.register(print, 'tidy'); program()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "tidy"


@pytest.mark.parametrize(
    ("words", "lasts"),
    [
        ("plan", False),
        ("drift", False),
        ("validate", False),
        ("apply --yes", True),
        ("destroy --yes", True),
        ("token rotate --yes", True),
    ],
)
def test_garbage_is_looked_for_by_commands_that_may_last(words, lasts):
    code = (
        "import atexit, gc; from bfinfra.cli import program; atexit.register(lambda: "
        "print(gc.isenabled())); program()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split(), "nosuch.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, f"{lasts}\n")


def test_a_terminal_without_the_letters_gets_their_numbers():
    done = subprocess.run(
        [sys.executable, "-m", "bfinfra", "apply", "--help"],
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--allow-\\u2026" in done.stdout


def complete(script: str, words: str) -> set[str]:
    """What bash offers behind these words; the last one may be incomplete."""
    done = subprocess.run(
        [
            "bash",
            "-c",
            (
                f"{script}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _bfinfra; printf "
                f"'%s\\n' \"${{COMPREPLY[@]}}\""
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def script():
    return subprocess.run(
        [sys.executable, "-m", "bfinfra", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("bfinfra ap", {"apply"}),
        ("bfinfra s", {"schema", "sandbox", "schedule", "show", "state"}),
        ("bfinfra sandbox ''", {"start", "stop", "reset", "status", "faults"}),
        ("bfinfra --output j", {"json", "jsonl"}),
        ("bfinfra --output json apply --allow", {"--allow-delete", "--allow-disruption"}),
        ("bfinfra completion ''", {"bash", "zsh", "fish"}),
        ("bfinfra ova inspect --ver", {"--verify", "--verbose"}),
        ("bfinfra sandbox faults --cl", {"--clear"}),
        (f"bfinfra plan {__file__[:-1]}", {__file__}),
        ("bfinfra kinds vgpu", {"vgpu_license"}),
        ("bfinfra explain resource_p", {"resource_pool"}),
    ],
)
def test_bash_completes(words, offers, script):
    assert complete(script, words) == offers


@pytest.mark.parametrize(
    "words", ["apply site.yaml --allow-delete", "adopt site.yaml", "apply --cluster x --allow-disruption"]
)
def test_bash_completes_the_addresses_of_the_site(words, script, tmp_path, monkeypatch):
    text = "site: poc\nvcenter: {server: vc}\nresource_pool:\n  gpu: {cluster: c1}\n"
    (tmp_path / "site.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert complete(script, f"bfinfra {words} resource") == {"resource_pool/gpu"}


def test_a_site_with_problems_offers_no_addresses(tmp_path, monkeypatch, capsys):
    (tmp_path / "site.yaml").write_text("site: [")
    monkeypatch.chdir(tmp_path)
    assert main(["completion", "bash", "--addresses", "plan", "site.yaml"]) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_and_option_is_in_the_script(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in commands(build()):
        for option in command.options:
            for flag in option.flags:
                assert (flag if shell == "zsh" else flag.lstrip("-")) in script
        for word, _ in command.follow:
            assert word in script or word in ("@files", "@addresses")
    assert (
        "complete -c bfinfra -n __fish_use_subcommand -a 'apply' -d 'create, change and delete until the servers match the site'"
        in script
        or shell == "zsh"
    )
    assert script.startswith("#compdef bfinfra") or shell == "fish"


def test_a_current_folder_that_is_gone_is_reported(tmp_path):
    (tmp_path / "gone").mkdir()
    script = f"rmdir ../gone; exec '{sys.executable}' -m bfinfra validate site.yaml"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path / "gone"
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "error: the current folder is gone")
