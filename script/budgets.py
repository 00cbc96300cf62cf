"""Counts what the design bounds: sizes of files and functions, public docstrings, and marks that need a reason."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_P50, FILE_P90, FILE_MAX = 100, 250, 400
FUNCTION_P50, FUNCTION_P95, FUNCTION_MAX = 8, 30, 60
ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {r"\bTODO\b|\bFIXME\b|\bXXX\b": "unfinished work", r"NotImplementedError": "a stub", r"pytest\.(?:mark\.)?xfail": "a test that can't fail",
             r"type: ignore(?!\[[a-z, -]+\]  # )": "an ignored type without its reason",
             r"noqa(?!: [A-Z0-9, ]+ -)": "an ignored rule without its reason"}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def undocumented(path: Path, tree: ast.Module) -> Iterator[str]:
    if not ast.get_docstring(tree) and path.name != "__init__.py" and path.name != "__main__.py":
        yield f"{path.relative_to(ROOT)}: no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no docstring"
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_") and not ast.get_docstring(inner):
                    if not any(isinstance(d, ast.Name) and d.id == "override" for d in inner.decorator_list):
                        yield f"{path.relative_to(ROOT)}:{inner.lineno}: {node.name}.{inner.name} has no docstring"


def share(values: list[int], part: float) -> int:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def main() -> int:
    files, sizes, wrong = [], [], []
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
                wrong.append(f"{path.relative_to(ROOT)}:{function.lineno}: {function.name} has {length} lines, at most {FUNCTION_MAX}")
        wrong += undocumented(path, tree)
        for pattern, what in FORBIDDEN.items():
            wrong += [f"{path.relative_to(ROOT)}:{n}: {what}" for n, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]
    bounds = [("file p50", share(files, .5), FILE_P50), ("file p90", share(files, .9), FILE_P90),
              ("function p50", share(sizes, .5), FUNCTION_P50), ("function p95", share(sizes, .95), FUNCTION_P95)]
    wrong += [f"{name} is {value} lines, at most {limit}" for name, value, limit in bounds if value > limit]
    print("; ".join(f"{name} {value} (≤{limit})" for name, value, limit in bounds), f"; files {len(files)}, functions {len(sizes)}")
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
