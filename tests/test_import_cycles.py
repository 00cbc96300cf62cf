"""No file of the package imports itself through others: not for types, not inside of functions either."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def imports(package):
    """Module → what it imports, wherever in the file that stands."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}


def circle(graph):
    """The modules of one circle, "" where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(reversed(error.args[1]))
    return ""


def test_files_import_each_other_in_no_circle():
    assert circle(imports("bfinfra")) == ""


def kind_of(module):
    """`bfinfra.kinds.cluster.workload` of a module of that kind; "" of another. The bases of a group count as
    one kind.
    """
    parts = module.split(".")
    return ".".join(parts[:4]) if parts[:2] == ["bfinfra", "kinds"] and len(parts) > 3 else ""


def test_kinds_import_each_other_in_no_circle_and_their_bases_import_none():
    between = {}
    for module, found in imports("bfinfra").items():
        if kind := kind_of(module):
            between.setdefault(kind, set()).update({kind_of(each) for each in found} - {kind, ""})
    assert circle(between) == ""
    assert {kind: found for kind, found in between.items() if kind.endswith(".base") and found} == {}


@pytest.mark.parametrize(
    "back",
    [
        "from loop.first import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from loop.first import name",
        "def later():\n    from loop.first import name",
    ],
)
def test_a_cycle_is_found_wherever_its_imports_are(back, tmp_path, monkeypatch):
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "__init__.py").touch()
    (tmp_path / "loop" / "first.py").write_text("from loop import second\nname = second\n")
    (tmp_path / "loop" / "second.py").write_text(f"{back}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "loop.first → loop.second" in f"{circle(imports('loop'))} → loop.second"
