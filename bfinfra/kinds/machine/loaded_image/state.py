"""How loaded images stand on machines, and what is looked at to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.machine.base import FOLDER, OnHosts, SoftwareFacts, text_of
from bfinfra.kinds.machine.loaded_image.runtime import FLAGS, LISTS, RUNTIMES, Runtime, listed, of_kubelet
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

ENDING = ".loaded_image"
LOOK: dict[str, Sequence[str]] = {
    "records": ("grep", "-rs", "", FOLDER, f"--include=*{ENDING}"),
    "kubelet": ("cat", FLAGS),
    **LISTS,
}


def record(name: str) -> str:
    """The path of its record on a machine."""
    return f"{FOLDER}/{name}{ENDING}"


@dataclass(frozen=True, slots=True)
class Noted:
    """What a machine's record says of an image that bfinfra loaded. `content`: what it was made of; `listed`:
    the id that the runtime gave it.
    """

    mark: Mark | None
    runtime: str = ""
    image: str = ""
    content: str = ""
    listed: str = ""


@dataclass(frozen=True)
class Found:
    """One machine. `kubelet`: the runtime that its kubelet uses; `images`: by runtime, full name → id, of
    those that answer; `silent`: why the others don't.
    """

    records: Mapping[str, Noted] = field(default_factory=dict)
    kubelet: Runtime | None = None
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def runtime(self, wanted: Runtime | None) -> Runtime | None:
        """The one that gets images; None where none answers."""
        return wanted or self.kubelet or next((each for each in RUNTIMES if each in self.images), None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image on one machine. `now`: the id that the runtime has it under, "" where it has none."""

    noted: Noted
    now: str = ""

    @property
    def mark(self) -> Mark | None:
        """Whose it is."""
        return self.noted.mark

    @property
    def there(self) -> bool:
        """There is something of it."""
        return True

    @property
    def content(self) -> str:
        """What it is made of, "" where it is gone or another one has its name."""
        return self.noted.content if self.now and self.now == self.noted.listed else ""


class State(OnHosts[Loaded]):
    """How it stands on machines."""


@dataclass(frozen=True)
class LoadedImageFacts(SoftwareFacts[Found]):
    """`packages`: by resource, the id of the image in its archive; `problems`: what is wrong with that."""

    problems: Mapping[str, str] = field(default_factory=dict)


def read(answers: Answers) -> Found:
    """From what a machine said."""
    texts: dict[str, list[str]] = {}
    for path, line in _lines(text_of(answers, "records") or ""):
        texts.setdefault(path.rpartition("/")[2].removesuffix(ENDING), []).append(line)
    images: dict[str, dict[str, str]] = {
        each: listed(each, answers[each].text) for each in RUNTIMES if answers[each].ok
    }
    silent: dict[str, str] = {
        each: " ".join(answers[each].text.split())[-200:] for each in RUNTIMES if not answers[each].ok
    }
    kubelet = of_kubelet(text) if (text := text_of(answers, "kubelet")) is not None else None
    return Found({name: _noted(lines) for name, lines in texts.items()}, kubelet, images, silent)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        path, colon, rest = line.partition(f"{ENDING}:")
        if colon:
            yield f"{path}{ENDING}", rest


def _noted(lines: list[str]) -> Noted:
    values = dict(
        line.split("=", 1) for line in lines if line.startswith(("runtime=", "image=", "content=", "listed="))
    )
    return Noted(Mark.decode("\n".join(lines)), **values)
