"""The live state of loaded images on machines, and the commands that read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import by_file, lines_below
from bfinfra.kinds.machine.base import FOLDER, OnHosts, SoftwareFacts, text_of
from bfinfra.kinds.machine.loaded_image.runtime import FLAGS, LISTS, RUNTIMES, Runtime, listed, of_kubelet
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

ENDING = ".loaded_image"
LOOK: dict[str, Sequence[str]] = {"records": lines_below(FOLDER, ENDING), "kubelet": ("cat", FLAGS), **LISTS}


def record(name: str) -> str:
    """The path of its record on a machine."""
    return f"{FOLDER}/{name}{ENDING}"


@dataclass(frozen=True, slots=True)
class Noted:
    """The record of an image that bfinfra loaded. `content`: its content; `listed`: its id in the runtime."""

    mark: Mark | None
    runtime: str = ""
    image: str = ""
    content: str = ""
    listed: str = ""


@dataclass(frozen=True)
class Found:
    """One machine. `kubelet`: the runtime that its kubelet uses; `images`: by runtime, full name → id, for
    runtimes that answer; `silent`: why the others don't.
    """

    records: Mapping[str, Noted] = field(default_factory=dict)
    kubelet: Runtime | None = None
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    def runtime(self, wanted: Runtime | None) -> Runtime | None:
        """The runtime that gets images; None if none answers."""
        return wanted or self.kubelet or next((each for each in RUNTIMES if each in self.images), None)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image on one machine. `now`: its id in the runtime, "" if it is not there."""

    noted: Noted
    now: str = ""

    @property
    def mark(self) -> Mark | None:
        """Its mark."""
        return self.noted.mark

    @property
    def there(self) -> bool:
        """True if the machine has anything of it."""
        return True

    @property
    def content(self) -> str:
        """Its content, "" if it is missing or another image has its name."""
        return self.noted.content if self.now and self.now == self.noted.listed else ""


class State(OnHosts[Loaded]):
    """The image on each of its machines."""


@dataclass(frozen=True)
class LoadedImageFacts(SoftwareFacts[Found]):
    """`packages`: by resource, the id of the image in its archive; `problems`: why that can't be read."""

    problems: Mapping[str, str] = field(default_factory=dict)


def read(answers: Answers) -> Found:
    """From a machine's answers."""
    texts: dict[str, list[str]] = {}
    for path, line in by_file(text_of(answers, "records") or ""):
        texts.setdefault(path.rpartition("/")[2].removesuffix(ENDING), []).append(line)
    images: dict[str, dict[str, str]] = {
        each: listed(each, answers[each].text) for each in RUNTIMES if answers[each].ok
    }
    silent: dict[str, str] = {
        each: " ".join(answers[each].text.split())[-200:] for each in RUNTIMES if not answers[each].ok
    }
    kubelet = of_kubelet(text) if (text := text_of(answers, "kubelet")) is not None else None
    return Found({name: _noted(lines) for name, lines in texts.items()}, kubelet, images, silent)


def _noted(lines: list[str]) -> Noted:
    values = dict(
        line.split("=", 1) for line in lines if line.startswith(("runtime=", "image=", "content=", "listed="))
    )
    return Noted(Mark.decode("\n".join(lines)), **values)
