"""Site files, overlays and values → one site's blocks. Later parts know neither overlays nor values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from bfinfra.model.errors import Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.variant import Variant
from bfinfra.model.yaml import Entry, Node
from bfinfra.spec import files
from bfinfra.spec.files import SiteDocument
from bfinfra.spec.merge import Blocks, merge, names_expected
from bfinfra.spec.overlay import overlaid
from bfinfra.spec.places import SourcePlaces
from bfinfra.spec.values import fill


@dataclass(frozen=True, slots=True)
class Resolved:
    """`documents`: the site's own files, then overlays, then files of values; `own`: the number of the
    site's; `broken`: the blocks that lack a value; `unused`: a warning for each value that nothing uses.
    """

    blocks: Blocks
    documents: list[SiteDocument]
    own: int
    broken: frozenset[Key | str]
    unused: tuple[Problem, ...]

    @property
    def sound(self) -> Blocks:
        """The blocks that lack no value."""
        if not self.broken:
            return self.blocks
        return Blocks(
            {name: block for name, block in self.blocks.settings.items() if name not in self.broken},
            {key: block for key, block in self.blocks.resources.items() if key not in self.broken},
        )


def resolved(
    paths: Sequence[Path], variant: Variant, kinds: Collection[str], problems: list[Problem]
) -> Resolved:
    """The site at `paths` in this variant. Problems are added to `problems`. `kinds`: every kind's name."""
    documents = files.read(paths, problems)
    blocks = merge(documents, kinds, problems)
    home = documents[0].path.absolute().parent if documents else Path.cwd()
    read = [*documents]
    for path in variant.overlays:
        found = files.read([path], problems)
        problems += _also_of_the_site(documents, found)
        over = merge(found, kinds, problems)
        problems += _emptied(found, kinds)
        blocks = overlaid(blocks, over, home, problems)
        read += found
    given = files.read(variant.value_files, problems)
    filled = fill(blocks, given, variant.given, problems)
    return Resolved(filled.blocks, [*read, *given], len(documents), filled.broken, filled.unused)


def merged(site: Site) -> Node:
    """The site as one document, with overlays and values applied. Every node keeps its place."""
    assert isinstance(site.places, SourcePlaces), "it was read from files"
    blocks = site.places.blocks
    found = {name: block.entry for name, block in blocks.settings.items()}
    first = next(iter(found.values()))
    for key, block in blocks.resources.items():
        if key.kind not in found:
            found[key.kind] = Entry(first.mark, first.node._replace(value={}))
        found[key.kind].node.value[key.name] = block.entry
    return first.node._replace(value=found)


def _also_of_the_site(documents: Sequence[SiteDocument], overlay: Sequence[SiteDocument]) -> list[Problem]:
    own = {document.path.resolve() for document in documents}
    return [
        Problem(
            "the overlay is also a file of the site",
            str(document.path),
            "every YAML file directly in a folder belongs to its site",
            "put overlays into their own folder, such as overlays/",
        )
        for document in overlay
        if document.path.resolve() in own
    ]


def _emptied(overlay: Sequence[SiteDocument], kinds: Collection[str]) -> list[Problem]:
    """Problems for kinds that an overlay sets to null: whether it means to remove all their resources is
    unclear.
    """
    tops = [document.root.value for document in overlay if document.root]
    return [
        names_expected(kind, entry, f"remove resources one by one: {kind}: {{a-name: null}}")
        for top in tops
        if isinstance(top, dict)
        for kind, entry in top.items()
        if kind in kinds and entry.node.value is None
    ]
