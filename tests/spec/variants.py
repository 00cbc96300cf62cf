"""Sites of the grove with overlays and values, for the tests of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grove import GROVE

from bfinfra.model.errors import Place, Problem, SiteError
from bfinfra.model.site import Site
from bfinfra.model.variant import Given, Variant
from bfinfra.spec.load import load


def variant(
    folder: Path, text: str, *overlays: str, values: tuple[str, ...] = (), given: dict[str, Any] | None = None
) -> Site:
    """The site of this text, with overlays and files of values of these texts laid on it."""
    (folder / "site.yaml").write_text(text)
    return load(
        [folder / "site.yaml"],
        variant=Variant(
            tuple(_written(folder, "over", overlays)),
            tuple(_written(folder, "values", values)),
            tuple(Given(name, data, f"--set {name}") for name, data in (given or {}).items()),
        ),
        env={},
        kinds=GROVE,
    )


def _written(folder: Path, name: str, texts: tuple[str, ...]) -> list[Path]:
    files = [folder / f"{name}{number}.yaml" for number, _ in enumerate(texts, 1)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files


def refused(folder: Path, text: str, *overlays: str, **how: Any) -> list[str]:
    """What is wrong, each as `file:line:column what; why; next`, the file without its folder."""
    with pytest.raises(SiteError) as caught:
        variant(folder, text, *overlays, **how)
    return [message(problem) for problem in caught.value.problems]


def message(problem: Problem) -> str:
    """A problem as a line, without the folder of its file."""
    at = problem.where
    if isinstance(at, Place) and at.line:
        at = f"{at.file.name}:{at.line}:{at.column}"
    text = f"{at} " + "; ".join(part for part in (problem.what, problem.why, problem.next) if part)
    return (
        text.replace(f"{Path(problem.where.file).parent}/", "") if isinstance(problem.where, Place) else text
    )
