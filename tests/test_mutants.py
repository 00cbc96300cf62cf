"""script/mutants chooses lines and tests, and holds its list of survivors to what survives."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def loaded(name):
    found = importlib.util.spec_from_file_location(name, ROOT / "script" / f"{name}.py")
    found.loader.exec_module(module := importlib.util.module_from_spec(found))
    return module


mutating, budgets = loaded("mutating"), loaded("budgets")
GUARD = "bfinfra/engine/guard.py"


def mutant(end, change="- a + b", function="check"):
    return mutating.Mutant("some", GUARD, function, change, end)


def test_the_tests_of_a_file_are_those_beside_it_and_those_that_import_it():
    assert "tests/engine" in mutating.near(GUARD)
    assert mutating.near("bfinfra/kinds/vcenter/gpu_host/decide.py") == {"tests/kinds/gpu_host"}
    by_import = mutating.near("bfinfra/engine/journal.py")
    assert {"tests/engine", "tests/engine/test_journal.py", "tests/model/test_private.py"} <= by_import


def test_no_test_that_reads_the_source_is_asked():
    tests = {test for file in mutating.always() for test in mutating.near(file)}
    assert not [test for test in tests if test.startswith(("tests/lint", "tests/docs", "tests/test_"))]


def test_what_is_always_tried_is_all_of_the_engine_and_what_kinds_decide():
    files = mutating.always()
    assert {GUARD, "bfinfra/model/mark.py", "bfinfra/kinds/vcenter/gpu_host/decide.py"} <= {*files}
    assert "bfinfra/kinds/vcenter/gpu_host/kind.py" not in files


def test_of_the_rest_a_seed_draws_the_same_lines_each_time():
    drawn = mutating.sample(20, 7, "bfinfra/app")
    assert drawn == mutating.sample(20, 7, "bfinfra/app") != mutating.sample(20, 8, "bfinfra/app")
    assert sum(len(lines) for lines in drawn.values()) == 60


def test_a_change_is_the_lines_that_it_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(mutating, "ROOT", tmp_path)

    def git(*words):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        subprocess.run(("git", *who, *words), cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "bfinfra").mkdir()
    (file := tmp_path / "bfinfra" / "a.py").write_text("".join(f"{n}\n" for n in range(9)))
    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "-m", "Begin")
    file.write_text(file.read_text().replace("4\n", "four\nand more\n"))
    assert mutating.changed("HEAD") == {"bfinfra/a.py": {5, 6}}
    git("commit", "-a", "-m", "Change")
    assert mutating.changed("") == {"bfinfra/a.py": {5, 6}}
    git("checkout", "-b", "part")
    git("commit", "-m", "More", "--allow-empty")
    assert mutating.changed("") == {}


def test_only_lines_of_functions_are_changed():
    assert mutating.bodies("A = 1\n\n\ndef f():\n    return A\n\n\nB = 2\n") == {4, 5}


@pytest.mark.parametrize(
    ("was", "now", "for_people"),
    [
        ('raise Busy("it is in use")', 'raise Busy("XXit is in useXX")', True),
        ('raise Busy("it is in use")', 'raise Busy("IT IS IN USE")', True),
        ('mode = "rw"', 'mode = "XXrwXX"', False),
        ("if a and b:", "if a or b:", False),
    ],
)
def test_what_only_a_person_reads_is_no_mutant(was, now, for_people):
    assert mutating.for_people(was, now) is for_people


def test_a_survivor_that_is_not_on_the_list_is_named():
    new, vain = mutating.compare([mutant("survived"), mutant("killed", "- c + d")], {}, set())
    assert (new, vain) == ({(GUARD, "check", "- a + b"): "survived"}, [])


def test_what_no_test_calls_is_one_entry_for_its_function():
    alone = [mutant("no test"), mutant("no test", "- c + d")]
    assert mutating.compare(alone, {}, set()) == ({(GUARD, "check", "*"): "no test"}, [])
    assert mutating.compare(alone, {(GUARD, "check", "*"): "open"}, set()) == ({}, [])


def test_an_entry_that_survives_no_longer_is_named():
    known = {(GUARD, "check", "- a + b"): "open", (GUARD, "check", "*"): "open"}
    assert mutating.compare([mutant("killed")], known, set()) == ({}, [*known])


def test_an_entry_of_code_that_is_gone_is_named_when_its_file_is_tried_whole():
    known = {(GUARD, "gone", "- x + y"): "open"}
    assert mutating.compare([mutant("killed")], known, set()) == ({}, [])
    assert mutating.compare([mutant("killed")], known, {GUARD}) == ({}, [*known])


def test_the_table_counts_by_folder_and_apart_what_is_equivalent():
    tried = [
        mutant(end, str(n)) for n, end in enumerate(("killed", "refused", "survived", "survived", "no test"))
    ]
    *_, engine, total = mutating.table(tried, {(GUARD, "check", "2"): "equivalent: both are empty there"})
    assert engine == "| bfinfra/engine | 5 | 1 | 1 | 1 | 2 | 1 |"
    assert total.startswith("| all | 5 |")


def test_the_list_is_written_as_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mutating, "LIST", tmp_path / "list.toml")
    mutating.LIST.write_text("# a head\n")
    entries = {(GUARD, "A.b", '- f("ü\\n") + f(None)'): "open", (GUARD, "check", "*"): "equivalent: why"}
    mutating.write(entries)
    assert mutating.listed() == entries
    assert mutating.LIST.read_text().startswith("# a head\n\n")


def test_every_entry_of_the_list_names_code_that_is_there():
    for file, function, _ in mutating.listed():
        names = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")
        }
        assert {*function.split(".")} <= names, (file, function)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ('"- a + b" = "equivalent: no"', "say open, or equivalent: and why"),
        ('"- a + b" = "later"', "say open, or equivalent: and why"),
        ('"- a + b" = "open"\n"- c + d" = "open"', "write the missing test"),
        ("", "lower SURVIVORS"),
    ],
)
def test_the_list_has_reasons_and_only_shrinks(monkeypatch, entries, words):
    monkeypatch.setattr(budgets, "SURVIVORS", 1)
    assert any(words in line for line in budgets.survivors(f'["a.py"."f"]\n{entries}\n'))
    assert not list(budgets.survivors('["a.py"."f"]\n"- a + b" = "equivalent: both are empty at that place"'))
