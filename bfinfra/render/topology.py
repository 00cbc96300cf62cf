"""A picture of a site's resources: columns in the order of the references, parts inside of their resource,
drift marked by sign, word and colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bfinfra.model.order import Before
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.render.html_text import text
from bfinfra.render.safe import safe

WIDTH, GAP, ROW, PART = (
    205,
    56,
    14,
    18,
)  # pixels: size of a box, between columns, between rows, of a line of parts
HEAD, PARTS_IN_LINE, LONGEST = 44, 5, 24
MOST = 40  # up-to-date boxes of one kind; the others become one box with their number


@dataclass(frozen=True)
class Box:
    """One resource, or a box for many. `link`: the id of its row in the table, or ""."""

    key: Key
    parts: tuple[str, ...] = ()
    cause: str = ""
    sign: str = ""
    words: str = "up to date"
    link: str = ""
    stands_for: int = 0

    @property
    def height(self) -> int:
        """In pixels."""
        return HEAD + PART * -(-len(self.parts) // PARTS_IN_LINE)


def parts_of(spec: Any) -> tuple[str, ...]:
    """The parts inside of a resource, from its spec; () if the site doesn't have it."""
    return () if spec is None else tuple(spec.parts())


class Drawing:
    """A site's boxes in columns, those of the first column first. `before`: key → the keys that it refers
    to.
    """

    def __init__(self, boxes: Sequence[Box], before: Before) -> None:
        shown, self._folded = _folded(boxes)
        self._before = before
        columns = _columns([box.key for box in shown], before, self._folded)
        self._columns = [
            sorted(
                (box for box in shown if box.key in column),
                key=lambda box: (box.key.kind, not box.cause, box.key.name),
            )
            for column in columns
        ]
        self.boxes = [box for column in self._columns for box in column]

    @property
    def width(self) -> int:
        """In pixels."""
        return max(20 + len(self._columns) * (WIDTH + GAP) - GAP, 20)

    def comes_after(self, box: Box) -> list[Key]:
        """The drawn boxes that a box refers to."""
        drawn = {each.key for each in self.boxes}
        first = (self._folded.get(other, other) for other in self._before.get(box.key, ()))
        return [key for key in dict.fromkeys(first) if key in drawn]

    def picture(self, style: str = "") -> str:
        """The picture as SVG. Each box is a link whose name contains all its text; the lines are only visual.

        `style`: the style sheet of a picture by itself.
        """
        places, bottom = {}, 20
        for x, column in enumerate(self._columns):
            y = 10
            for box in column:
                places[box.key] = (10 + x * (WIDTH + GAP), y, box)
                y += box.height + ROW
            bottom = max(bottom, y)
        alone = ' xmlns="http://www.w3.org/2000/svg"' if style else ""
        return "\n".join(
            [
                (
                    f'<svg{alone} viewBox="0 0 {self.width} {bottom}" '
                    f'width="{self.width}" height="{bottom}" role="list" '
                    'aria-label="Resources of the site">'
                ),
                *([f"<style>{style}</style>"] if style else []),
                '<g class="edges" aria-hidden="true">',
                *_edges(places, self._before, self._folded),
                "</g>",
                *(_box(*place) for place in places.values()),
                "</svg>",
            ]
        )


def _folded(boxes: Sequence[Box]) -> tuple[list[Box], dict[Key, Key]]:
    """Boxes without the last up-to-date ones of a large kind, which become one box; and key → its box."""
    shown, folded = [box for box in boxes if box.cause], dict[Key, Key]()
    kinds: dict[str, list[Box]] = {}
    for box in boxes:
        if not box.cause:
            kinds.setdefault(box.key.kind, []).append(box)
    for kind, many in kinds.items():
        shown += many[:MOST]
        if rest := many[MOST:]:
            one = Box(Key(kind, f"{len(rest)} more"), stands_for=len(rest))
            shown.append(one)
            folded |= dict.fromkeys((box.key for box in rest), one.key)
    return shown, folded


def _columns(keys: Sequence[Key], before: Before, folded: Mapping[Key, Key]) -> list[set[Key]]:
    """The columns: each resource after the last of those that it refers to."""
    depth: dict[Key, int] = {}

    def of(key: Key, above: frozenset[Key] = frozenset()) -> int:
        if key not in depth and key not in above:
            depth[key] = max((1 + of(other, above | {key}) for other in before.get(key, ())), default=0)
        return depth.get(key, 0)

    for key, one in folded.items():
        depth[one] = max(depth.get(one, 0), of(key))
    by: dict[int, set[Key]] = {}
    for key in keys:
        by.setdefault(of(key), set()).add(key)
    return [by[level] for level in sorted(by)]


def _edges(
    places: Mapping[Key, tuple[int, int, Box]], before: Before, folded: Mapping[Key, Key]
) -> Iterator[str]:
    pairs = {
        (folded.get(other, other), folded.get(key, key)): None
        for key, first in before.items()
        for other in first
    }
    for other, key in pairs:
        if other in places and key in places:
            (x1, y1, _), (x2, y2, _) = places[other], places[key]
            left, right = x1 + WIDTH, x2
            middle = (left + right) / 2
            yield (
                f'<path d="M{left} {y1 + HEAD // 2} C{middle:g} {y1 + HEAD // 2} {middle:g} {y2 + HEAD // 2}'
                f' {right} {y2 + HEAD // 2}"/>'
            )


def _box(x: int, y: int, box: Box) -> str:
    inside = f", holds {', '.join(box.parts)}" if box.parts else ""
    name = text(f"{box.key}{': ' if box.words else ''}{box.words}{inside}")
    lines = [
        f'<rect width="{WIDTH}" height="{box.height}" rx="6"/>',
        f'<text x="10" y="17" class="kind">{_text(box.key.kind)}</text>',
        f'<text x="10" y="35" class="name">{_text(box.key.name)}</text>',
        *([f'<text x="{WIDTH - 16}" y="20" class="sign">{text(box.sign)}</text>'] if box.sign else []),
        *(
            (
                f'<rect class="part" x="{10 + (n % PARTS_IN_LINE) * 32}" '
                f'y="{HEAD + (n // PARTS_IN_LINE) * PART - 4}" width="26" height="12" '
                f'rx="2"><title>{text(part)}</title></rect>'
            )
            for n, part in enumerate(box.parts)
        ),
    ]
    body = "".join(lines)
    classes = f"box {box.cause}".strip()
    if box.link:
        return (
            f'<g role="listitem" transform="translate({x} {y})"><a href="#{text(box.link)}" '
            f'class="{classes}" aria-label="{name}">{body}</a></g>'
        )
    return (
        f'<g role="listitem" transform="translate({x} {y})" class="{classes}" tabindex="0" '
        f'aria-label="{name}">{body}</g>'
    )


def _text(words: str) -> str:
    plain = safe(words)
    return text(plain if len(plain) <= LONGEST else f"{plain[: LONGEST // 2]}…{plain[1 - LONGEST // 2 :]}")
