"""Counts what the design bounds: sizes of files and functions, public docstrings, marks that need a reason,
and ways around the checks.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ESCAPES = {"noqa": 97, "type: ignore": 19, "except Exception": 19, "Any": 1795}
"""How often bfinfra goes around ruff, goes around mypy, catches everything, and names no type. Exact: a fall
is kept, a rise is justified.
"""
SURVIVORS = 81
"""Entries of tests/mutants/survivors.toml: what script/mutants changes without a red test. Exact, too."""
FILE_P50, FILE_P90, FILE_MAX = 110, 260, 400
FUNCTION_P50, FUNCTION_P95, FUNCTION_MAX = 8, 30, 60
ROOT = Path(__file__).resolve().parent.parent
TREES = ("bfinfra", "benchmarks", "script", "tests")
FORBIDDEN = {
    r"\bTODO\b|\bFIXME\b|\bXXX\b": "unfinished work",
    r"NotImplementedError": "a stub",
    r"pytest\.(?:mark\.)?xfail": "a test that can't fail",
    r"type: ignore(?!\[[a-z, -]+\]  # )": "an ignored type without its reason",
    r"noqa(?!: [A-Z0-9, ]+ -)": "an ignored rule without its reason",
}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def overloads(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether it is one of the signatures of a function that has its docstring below."""
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def undocumented(path: Path, tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree) and path.name not in {"__init__.py", "__main__.py"}:
        yield f"{path.relative_to(ROOT)}: no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node) and not overloads(node):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no docstring"
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if (
                    isinstance(inner, ast.FunctionDef)
                    and not inner.name.startswith("_")
                    and not ast.get_docstring(inner)
                    and not overrides(inner)
                ):
                    yield (
                        f"{path.relative_to(ROOT)}:{inner.lineno}: {node.name}.{inner.name} has no docstring"
                    )


def overrides(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "override" for d in function.decorator_list)


def forbidden(path: Path, text: str) -> Iterator[str]:
    for pattern, what in FORBIDDEN.items():
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(pattern, line):
                yield f"{path.relative_to(ROOT)}:{number}: {what}"


def escapes(text: str, tree: ast.Module) -> Counter[str]:
    found = Counter({mark: text.count(f"# {mark}") for mark in ("noqa", "type: ignore")})
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if node.type
                else {"Exception"}
            )
            found["except Exception"] += bool(caught & {"Exception", "BaseException"})
        elif isinstance(node, ast.Name) and node.id == "Any":
            found["Any"] += 1
    return found


def ratchet(found: Counter[str]) -> Iterator[str]:
    for what, allowed in ESCAPES.items():
        if found[what] < allowed:
            yield (
                f"{what} stands {found[what]} times in bfinfra, no longer {allowed}: lower its number in "
                "script/budgets.py"
            )
        elif found[what] > allowed:
            yield (
                f"{what} stands {found[what]} times in bfinfra, {allowed} are allowed: do without it, "
                "or raise its number in script/budgets.py and justify that in the commit's message"
            )


def survivors(text: str) -> Iterator[str]:
    """What is wrong with the list of survivors: an entry without a reason, and its length."""
    entries = [
        (file, function, change, verdict)
        for file, functions in tomllib.loads(text).items()
        for function, changes in functions.items()
        for change, verdict in changes.items()
    ]
    for file, function, change, verdict in entries:
        if verdict != "open" and not re.fullmatch(r"equivalent: .{20,}", verdict):
            yield f"survivors.toml: {file}, {function}, {change}: say open, or equivalent: and why"
    if len(entries) < SURVIVORS:
        yield f"survivors.toml has {len(entries)} entries, not {SURVIVORS}: lower SURVIVORS in budgets.py"
    elif len(entries) > SURVIVORS:
        yield (
            f"survivors.toml has {len(entries)} entries, {SURVIVORS} are allowed: write the missing test, or "
            "raise SURVIVORS in script/budgets.py and justify that in the commit's message"
        )


def share(values: list[int], part: float) -> int:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main() -> int:
    files, sizes, wrong, found = [], [], [], Counter[str]()
    for path in sorted((ROOT / "bfinfra").rglob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        lines = len(text.splitlines())
        if lines > FILE_MAX:
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {FILE_MAX}")
        files.append(lines)
        for function in functions(tree):
            length = (function.end_lineno or 0) - function.lineno + 1
            sizes.append(length)
            if length > FUNCTION_MAX:
                wrong.append(
                    f"{path.relative_to(ROOT)}:{function.lineno}: {function.name} has {length} lines, "
                    f"at most {FUNCTION_MAX}"
                )
        wrong += undocumented(path, tree)
        found += escapes(text, tree)
    for path in sorted(
        path for tree in TREES for path in (ROOT / tree).rglob("*.py") if path != Path(__file__).resolve()
    ):
        wrong += forbidden(path, path.read_text())
    bounds = [
        ("file p50", share(files, 0.5), FILE_P50),
        ("file p90", share(files, 0.9), FILE_P90),
        ("function p50", share(sizes, 0.5), FUNCTION_P50),
        ("function p95", share(sizes, 0.95), FUNCTION_P95),
    ]
    wrong += [f"{name} is {value} lines, at most {limit}" for name, value, limit in bounds if value > limit]
    wrong += ratchet(found)
    wrong += survivors((ROOT / "tests" / "mutants" / "survivors.toml").read_text())
    print(
        "; ".join(f"{name} {value} (≤{limit})" for name, value, limit in bounds),
        f"; files {len(files)}, functions {len(sizes)};",
        ", ".join(f"{what} {found[what]}" for what in ESCAPES),
    )
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
