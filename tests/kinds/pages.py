"""The pages of docs/kinds/, and the definition of a Site, as they ought to be; run as a program it writes
them (script/pages).
"""

from __future__ import annotations

from pathlib import Path

from bfinfra import kinds as registry
from bfinfra.operator.crd import definition
from bfinfra.render import kinds as render
from bfinfra.render.schedule import manifest
from bfinfra.spec.schema import schema

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/kinds"


def pages() -> dict[str, str]:
    """File name → text."""
    found = {name: registry.kind(name) for name in registry.names()}
    each = {
        f"{name}.md": render.page(name, kind, (ROOT / f"specs/kinds/{name}.yaml").read_text())
        for name, kind in found.items()
    }
    return {"README.md": render.index(found)} | each


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path in PAGES.glob("*.md"):
        path.unlink()
    for name, text in pages().items():
        (PAGES / name).write_text(text)
    (ROOT / "deploy/operator/crd.yaml").write_text(manifest([definition(schema())]) + "\n")
