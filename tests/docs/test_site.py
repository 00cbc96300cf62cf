"""What script/docs adds to mkdocs: a whole menu, links out of docs/, and nothing from other servers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.config import load_config
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]


def load(file: Path):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = load(ROOT / "script/docs_links.py")


def page(path: str) -> SimpleNamespace:
    return SimpleNamespace(file=SimpleNamespace(src_uri=path))


def named(entry) -> list[str]:
    """The pages of a menu."""
    if isinstance(entry, str):
        return [entry]
    return [name for inner in (entry.values() if isinstance(entry, dict) else entry) for name in named(inner)]


def test_the_menu_names_every_page_once():
    config = hooks.on_config(load_config(str(ROOT / "mkdocs.yml")))
    assert sorted(named(config.nav)) == sorted(
        str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")
    )


def test_a_link_out_of_docs_leads_to_a_copy_in_the_site():
    text = "[the site](../../specs/singapore-poc.yaml), [trust](trust.md), [none](../../specs/none.yaml)"
    assert hooks.on_page_markdown(text, page=page("explanation/map.md")) == (
        "[the site](../repository/specs/singapore-poc.yaml), [trust](trust.md), [none](../../specs/none.yaml)"
    )


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://unpkg.com/mermaid"></script>',
        '<link rel="stylesheet" href="//fonts.googleapis.com/css">',
        '<img alt="x" src=http://example.com/x.png>',
    ],
)
def test_a_page_that_loads_something_from_another_server_is_refused(loaded):
    with pytest.raises(PluginError, match="must work without a network"):
        hooks.on_post_page(f"<p>{loaded}</p>", page=page("x.md"))


def test_a_page_may_link_to_other_servers():
    text = '<a href="https://example.com">there</a> <img src="../images/x.png">'
    assert hooks.on_post_page(text, page=page("x.md")) == text
