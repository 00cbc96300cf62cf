"""Chooses lines and tests for mutmut, which makes the mutants and runs the tests; compares what survives with
tests/mutants/survivors.toml, and prints a table by folder. Ends with 1 where the list and the run differ.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
COPY = WORK / "mutants"
LIST = ROOT / "tests" / "mutants" / "survivors.toml"
PLACES = tomllib.loads((ROOT / "tests" / "mutants" / "places.toml").read_text())
KILLED, SURVIVED, UNTESTED, REFUSED = "killed", "survived", "no test", "refused"
CODES = {0: SURVIVED, None: UNTESTED, 33: UNTESTED, 5: UNTESTED, 37: REFUSED}
"""What mutmut's exit codes mean; None: no test reached anything. All others: red, out of time, a crash."""
text_of = functools.cache(Path.read_text)
Lines = dict[str, set[int]]
Key = tuple[str, str, str]  # a file, a function in it, and what was changed


class Mutant(NamedTuple):
    name: str
    file: str
    function: str
    change: str
    end: str

    @property
    def key(self) -> Key:
        return self.file, self.function, "*" if self.end == UNTESTED else self.change


def whole(places: Iterable[str]) -> Lines:
    found: Lines = {}
    for place in places:
        for path in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]:
            found[str(path.relative_to(ROOT))] = bodies(path.read_text())
    return found


def bodies(text: str) -> set[int]:
    """Lines in functions: mutmut changes no others."""
    defs = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return {line for each in defs for line in range(each.lineno, (each.end_lineno or 0) + 1)}


def always() -> Lines:
    found, acts = whole(PLACES["whole"]), PLACES["acting"]
    return {file: has for file, has in found.items() if "/kinds/" not in file or Path(file).name not in acts}


def git(*words: str) -> str:
    return subprocess.check_output(("git", "-C", str(ROOT), *words), text=True).strip()  # noqa: S607 - git as found


def changed(base: str) -> Lines:
    """The lines that differ from a commit; by default where this branch left main, or the last one."""
    if not base:
        main = git("for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main")
        fork = git("merge-base", "HEAD", main.split()[0]) if main else ""
        base = fork if fork not in {"", git("rev-parse", "HEAD")} else "HEAD~1"
    found: Lines = defaultdict(set)
    file = ""
    for line in git("diff", "-U0", "--no-ext-diff", base, "--", "bfinfra").splitlines():
        if line.startswith("+++ "):
            file = line[6:]
        elif (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)) and file.endswith(".py"):
            found[file] |= set(range(int(match[1]), int(match[1]) + int(match[2] or 1)))
    return found


def sample(count: int, seed: int, of: str = "bfinfra") -> Lines:
    """Lines drawn from what is not always tried whole: three for each mutant, as not every line has one."""
    tried = always()
    rest = ((file, line) for file, has in whole([of]).items() if file not in tried for line in has)
    drawn: Lines = defaultdict(set)
    for file, line in random.Random(seed).sample(sorted(rest), 3 * count):  # noqa: S311 - a draw
        drawn[file].add(line)
    return drawn


def near(file: str) -> set[str]:
    """The tests in the folder that mirrors the file's own, and of the plain ones those that import it."""
    parts = Path(file).parts[1:-1]
    of_kind = parts[:1] == ("kinds",) and len(parts) > 2
    mirrored = Path("tests", "kinds", parts[2]) if of_kind else Path("tests", *parts)
    found = {str(mirrored)} if parts and (ROOT / mirrored).is_dir() else set()
    package, _, name = file.removesuffix(".py").replace("/", ".").rpartition(".")
    imports = re.compile(rf"{re.escape(package)}(\.{name}\b| import (\([^)]*|[^\n(]*)\b{name}\b)")
    paths = (path for folder in PLACES["plain"] for path in (ROOT / "tests" / folder).rglob("test_*.py"))
    return found | {str(path.relative_to(ROOT)) for path in paths if imports.search(text_of(path))}


def prepare(chosen: Lines, tests: Iterable[str]) -> None:
    """A folder in which mutmut finds the repository, and writes."""
    shutil.rmtree(WORK, ignore_errors=True)
    COPY.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in {"build", "bfinfra", "tests", "pyproject.toml", ".git"}:
            (COPY / path.name).symlink_to(path)
    shutil.copytree(ROOT / "tests", COPY / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (WORK / "bfinfra").symlink_to(ROOT / "bfinfra")
    mypy = [sys.executable, "-m", "mypy", "--output=json", "--no-warn-unused-ignores", *sorted(chosen)]
    more = {"only_mutate": sorted(chosen), "type_check_command": ["env", *mypy]}
    more["pytest_add_cli_args_test_selection"] = sorted(tests)
    rows = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    head = "[tool.mutmut]\n"
    for folder in (WORK, COPY):
        (folder / "pyproject.toml").write_text(
            (ROOT / "pyproject.toml").read_text().replace(head, head + rows)
        )


def make(chosen: Lines) -> list[Mutant]:
    """Has mutmut write the mutants of the chosen lines."""
    os.chdir(WORK)
    from mutmut import __main__ as tool  # noqa: PLC0415 - it reads its settings from the folder it is in
    from mutmut.state import state  # noqa: PLC0415 - as above
    from mutmut.utils.file_utils import copy_src_dir  # noqa: PLC0415 - as above

    copy_src_dir()
    state()._covered_lines = {str(COPY / file): has for file, has in chosen.items()}  # noqa: SLF001 - the one way to name lines
    with contextlib.redirect_stdout(None):
        for each in [tool.create_file_mutants(Path(file)) for file in chosen]:
            if each.error:
                raise each.error
    os.chdir(ROOT)
    return [mutant for file in chosen for mutant in made(file)]


def made(file: str) -> Iterator[Mutant]:
    """The mutants of a file, without those that change only what a person reads, and how each ended."""
    text = (COPY / file).read_text().splitlines()
    spans = json.loads((COPY / f"{file}.spans").read_text())["spans"]
    for name, code in json.loads((COPY / f"{file}.meta").read_text())["exit_code_by_key"].items():
        mutated = name.rpartition(".")[2]
        mangled = mutated.rpartition("__mutmut_")[0]  # x_function, or xǁClassǁmethod
        function = ".".join(mangled.split("ǁ")[1:]) or mangled.removeprefix("x_")
        was, now = (
            [line.replace(form, "") for line in text[spans[form][0] - 1 : spans[form][1]]]
            for form in (f"{mangled}__mutmut_orig", mutated)
        )
        lines = [*difflib.unified_diff(was, now, n=0, lineterm="")][2:]
        gone, come = ([line[1:].strip() for line in lines if line[0] == sign] for sign in "-+")
        if not for_people(" ".join(gone), " ".join(come)):
            change = " ".join([*(f"- {line}" for line in gone), *(f"+ {line}" for line in come)])
            yield Mutant(name, file, function, change, CODES.get(code, KILLED))


def for_people(was: str, now: str) -> bool:
    """Whether a change is of the case of a text, or of a text with a space: what a person reads."""
    text = re.search(r"XX(.*)XX", now)
    return was.lower() == now.lower() or bool(text and " " in text[1] and now.replace("XX", "") == was)


def run(mutants: Iterable[Mutant]) -> str:
    """Has mutmut try these and no others. What it said, where it could not."""
    names = {mutant.name for mutant in mutants}
    for meta in COPY.glob("bfinfra/**/*.meta"):
        data = json.loads(meta.read_text())
        data["exit_code_by_key"] = {key: None for key in data["exit_code_by_key"] if key in names}
        meta.write_text(json.dumps(data))
    command = (sys.executable, "-m", "mutmut", "run", "--max-children", "1")
    with (WORK / "log").open("w") as log:
        ran = subprocess.run(command, cwd=WORK, stdout=log, stderr=log, check=False)
    said = (WORK / "log").read_text()
    return said[-3000:] if ran.returncode and "could not find any test case" not in said else ""


def listed() -> dict[Key, str]:
    """What survives → open, or equivalent and why."""
    found = tomllib.loads(LIST.read_text())
    return {(f, of, what): why for f, has in found.items() for of in has for what, why in has[of].items()}


def write(entries: Mapping[Key, str]) -> None:
    lines = [line for line in LIST.read_text().splitlines() if line.startswith("#")]
    before: tuple[str, ...] = ()
    for (file, function, change), why in sorted(entries.items()):
        if before != (before := (file, function)):
            lines += ["", f'["{file}"."{function}"]']
        lines.append(" = ".join(json.dumps(text, ensure_ascii=False) for text in (change, why)))
    LIST.write_text("\n".join(lines) + "\n")


def compare(mutants: list[Mutant], known: Iterable[Key], files: set[str]) -> tuple[dict[Key, str], list[Key]]:
    """What survives and is not listed, and entries in vain; of files tried whole, also those of no mutant."""
    left = {each.key: each.end for each in mutants if each.end in {SURVIVED, UNTESTED}}
    tried = {(m.file, m.function, what) for m in mutants for what in (m.change, "*")}
    vain = [key for key in known if key not in left and (key in tried or key[0] in files)]
    return {key: end for key, end in left.items() if key not in {*known}}, vain


def table(mutants: Iterable[Mutant], known: Mapping[Key, str]) -> Iterator[str]:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for each in mutants:
        same = each.end == SURVIVED and known.get(each.key, "").startswith("equivalent: ")
        for folder in (str(Path(each.file).parent), "~ all"):
            rows[folder]["equivalent" if same else each.end] += 1
    yield "| folder | made | refused by mypy | killed | equivalent | left | of these: no test |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for folder, row in sorted(rows.items()):
        cells = (row.total(), row[REFUSED], row[KILLED], row["equivalent"], row[SURVIVED] + row[UNTESTED])
        yield f"| {folder.removeprefix('~ ')} | {' | '.join(map(str, cells))} | {row[UNTESTED]} |"


def main() -> int:
    parser = argparse.ArgumentParser("script/mutants", allow_abbrev=False)
    parser.add_argument("places", nargs="*", metavar="FOLDER-or-FILE", help="all of these")
    parser.add_argument("--changed", nargs="?", default="", metavar="BASE", help="what changed (the default)")
    parser.add_argument("--always", action="store_true", help="what tests/mutants/places.toml names")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="that many mutants, drawn from the rest")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests beside the nearest")
    parser.add_argument("--write", action="store_true", help="renew the list: survivors come as open")
    asked = parser.parse_args()
    entire = always() if asked.always else whole(asked.places)
    drawn = sample(asked.sample, asked.seed) if asked.sample else {}
    chosen = entire or drawn or changed(asked.changed or "")
    tests = {test for file in chosen for test in near(file)} | {*asked.tests}
    prepare(chosen, tests)
    mutants = make(chosen)
    if drawn:
        mutants = random.Random(asked.seed).sample(mutants, min(asked.sample, len(mutants)))  # noqa: S311 - a draw
    print(f"{len(mutants)} mutants in {len(chosen)} files; how far it is says {WORK / 'log'}", flush=True)
    if failed := run(mutants) if mutants and tests else "":
        print(failed)
        return 2
    names, known = {mutant.name for mutant in mutants}, listed()
    mutants = [mutant for file in chosen for mutant in made(file) if mutant.name in names]
    new, vain = compare(mutants, known, {*entire})
    if asked.write:
        write({**{key: why for key, why in known.items() if key not in vain}, **dict.fromkeys(new, "open")})
    for key, end in new.items():
        print(f"left ({end}):", *key, sep="\n  ")
    for key in vain:
        print("survives no longer, or is no longer there; take it off the list:", *key, sep="\n  ")
    print("\n".join(table(mutants, known)))
    return int(bool(new or vain) and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
