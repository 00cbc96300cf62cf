"""Hooks of mkdocs. A folder in the menu becomes the list of its pages. A file outside of docs/ that a page
links to is copied into the site, under repository/. A page that loads from another server is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
LOADED = re.compile(
    r"<(?:script|img|link|iframe)\b[^>]*?\s(?:src|href)=\"?(?P<address>(?:https?:)?//[^\"\s>]+)"
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The menu with each folder in it replaced by its pages."""
    config.nav = [expanded(entry, Path(config.docs_dir)) for entry in config.nav or []]
    return config


def expanded(entry: Any, docs: Path) -> Any:
    """An entry of the menu; a path that ends with a slash becomes the folder's README and other pages."""
    if isinstance(entry, dict):
        return {title: expanded(inner, docs) for title, inner in entry.items()}
    if isinstance(entry, list):
        return [expanded(inner, docs) for inner in entry]
    if not entry.endswith("/"):
        return entry
    pages = sorted(page.name for page in (docs / entry).glob("*.md") if page.name != "README.md")
    return [entry + name for name in ("README.md", *pages)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/, and those of the repository that its pages link to."""
    pages = [file for file in files if file.is_documentation_page()]
    linked = {
        target
        for file in pages
        for link in LINK.finditer(file.content_string)
        if (target := outside(file.src_uri, link["path"]))
    }
    for target in sorted(linked):
        files.append(File.generated(config, in_site(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page's text, its links to the repository turned to where these files are in the site."""
    here = PurePosixPath(page.file.src_uri).parent

    def turned(link: re.Match[str]) -> str:
        target = outside(page.file.src_uri, link["path"])
        return f"]({os.path.relpath(in_site(target), here)})" if target else link[0]

    return LINK.sub(turned, markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """The finished page as it is. PluginError: it loads something from another server."""
    if found := LOADED.search(output):
        raise PluginError(
            f"{page.file.src_uri} loads {found['address']}: the site must work without a network"
        )
    return output


def outside(page: str, link: str) -> str | None:
    """The path from the root of the repository, if the link leads to a file outside of docs/."""
    target = (ROOT / "docs" / page).parent.joinpath(link).resolve()
    inside = target.is_relative_to(ROOT / "docs")
    return str(target.relative_to(ROOT)) if target.is_file() and not inside else None


def in_site(target: str) -> str:
    """Where a file of the repository is in the site; Markdown stays text."""
    return f"repository/{target}.txt" if target.endswith(".md") else f"repository/{target}"
