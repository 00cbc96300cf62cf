"""Every relative link in the repository's Markdown leads to a file or folder, and its anchor to a heading."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")


def markdown() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for name in listed if (path := ROOT / name).exists()]


def links(text: str) -> Iterator[str]:
    plain = CODE.sub("", FENCE.sub("", text))
    return (link for link in LINK.findall(plain) if not re.match(r"[a-z][a-z0-9+.-]*:", link))


def anchors(page: Path) -> set[str]:
    """The names that the headings of a page get on a forge."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path, base: Path) -> list[str]:
    found = []
    for link in links(page.read_text()):
        path, _, anchor = unquote(link).partition("#")
        target = (base / path).resolve() if path else page
        if not target.exists():
            found.append(f"{link}: there is no {target}")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{link}: {target.name} has no such heading")
    return found


def test_every_relative_link_leads_somewhere():
    fragments = ROOT / "changelog.d"  # their links are read from CHANGELOG.md
    wrong = {
        str(page.relative_to(ROOT)): bad
        for page in markdown()
        if (bad := broken(page, ROOT if page.parent == fragments else page.parent))
    }
    assert wrong == {}


def test_every_page_of_the_documentation_is_reached_from_its_index():
    start = ROOT / "docs/README.md"
    seen, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        for link in links(page.read_text()):
            target = (page.parent / unquote(link).partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in seen:
                seen.add(target)
                waiting.append(target)
    assert [str(page) for page in markdown() if page.is_relative_to(ROOT / "docs") and page not in seen] == []


@pytest.mark.parametrize("text", ["[gone](gone.md)", "[gone](page.md#gone)", "[gone](#gone)"])
def test_a_link_that_leads_nowhere_is_found(text, tmp_path):
    (tmp_path / "page.md").write_text(f"# Here\n\n{text}\n[fine](#here) `[code](gone.md)`\n")
    assert len(broken(tmp_path / "page.md", tmp_path)) == 1
