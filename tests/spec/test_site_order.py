"""`after`: what only a user knows must stand first."""

from __future__ import annotations

from pathlib import Path

import pytest
from grove import GROVE, TreeSpec, only, problems, site

from bfinfra.model import resource
from bfinfra.model.order import Capability
from bfinfra.model.refs import Key


def test_any_resource_may_come_after_any_other(tmp_path: Path) -> None:
    assert site(tmp_path, "site: g\npole: {p: {after: [tree/a, tree/b]}}\ntree: {a: {}, b: {}}\n").resources[
        Key("pole", "p")
    ].after == ("tree/a", "tree/b")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "[tree/ook]",
            "3:17 tree/oak: after.0 names tree/ook, and there is no such resource; did you mean tree/oak?",
        ),
        ("[tree/oak]", "3:17 tree/oak: after.0 names itself; remove it"),
        (
            "[tre/oak]",
            "3:17 tree/oak: after.0 names tre/oak, and there is no such resource; did you mean tree/oak?",
        ),
        (
            "[oak]",
            (
                "3:17 tree/oak: after.0: expected text of the form ^[a-z][a-z0-9_]*/\\S{1,253}$; "
                "found 'oak'; Addresses of resources, kind/name, "
                "that must be ready before this one is started, for reasons that bfinfra can't know. "
                "Deletion runs in the reverse order."
            ),
        ),
        (
            "tree/elm",
            "3:16 tree/oak: after: expected a list; found 'tree/elm'; bfinfra explain tree.after describes it",
        ),
    ],
)
def test_what_is_no_address_of_the_site_is_reported_at_its_place(
    tmp_path: Path, written: str, message: str
) -> None:
    assert only(tmp_path, f"site: g\ntree:\n  oak: {{after: {written}}}\n") == message


def test_an_invalid_resource_is_there_to_come_after(tmp_path: Path) -> None:
    assert "grow" in only(tmp_path, "site: g\ntree: {oak: {grow: 1}, elm: {after: [tree/oak]}}\n")


def test_a_circle_of_references_and_after_is_named_at_the_after(tmp_path: Path) -> None:
    assert only(tmp_path, "site: g\nnest: {n: {tree: oak}}\ntree: {oak: {after: [nest/n]}}\n") == (
        "3:22 tree/oak → nest/n → tree/oak: these wait for each other in a cycle; "
        "tree/oak waits for nest/n (after); nest/n waits for tree/oak (tree); remove nest/n from after"
    )


def test_a_circle_with_what_one_requires_of_the_other_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shade(TreeSpec):
        def provides(self, name, site):
            yield Capability("shade", "the garden")

    class Pole(resource.Spec):
        def requires(self, name, site):
            yield Capability("shade", "the garden")

    monkeypatch.setattr(GROVE["tree"], "Spec", Shade)
    monkeypatch.setattr(GROVE["pole"], "Spec", Pole)
    assert only(tmp_path, "site: g\npole: {p: {}}\ntree: {oak: {after: [pole/p]}}\n") == (
        "3:22 tree/oak → pole/p → tree/oak: these wait for each other in a cycle; "
        "tree/oak waits for pole/p (after); pole/p waits for tree/oak (shade on the garden); "
        "remove pole/p from after"
    )


def test_circles_of_references_are_reported_first(tmp_path: Path) -> None:
    found = problems(tmp_path, "site: g\ntree: {a: {near: b}, b: {near: a, after: [tree/a]}}\n")
    assert ["name each other" in str(problem) for problem in found] == [True]
