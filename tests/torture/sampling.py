"""What a process holds, looked at again and again while it runs."""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

Numbers = dict[str, float]
QUARTERS = 4


@dataclass
class Samples:
    """What `look` returned, in the order of time, by name."""

    taken: list[Numbers] = field(default_factory=list)

    def quarters(self, name: str) -> tuple[float, float]:
        """The medians of the first and of the last quarter. Raises StatisticsError without samples."""
        values = [each[name] for each in self.taken if name in each]
        part = max(1, len(values) // QUARTERS)
        return statistics.median(values[:part]), statistics.median(values[-part:])


def held(pid: int) -> Numbers:
    """MiB resident, threads, descriptors and sockets of a process."""
    place = Path(f"/proc/{pid}")
    pages = int((place / "statm").read_text().split()[1])
    links = []
    for each in (place / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            links.append(str(each.readlink()))
    return {
        "MiB": pages * os.sysconf("SC_PAGESIZE") / (1 << 20),
        "threads": len([*(place / "task").iterdir()]),
        "descriptors": len(links),
        "sockets": sum(link.startswith("socket:") for link in links),
    }


@contextmanager
def sampled(look: Callable[[], Numbers], every: float) -> Iterator[Samples]:
    """Look once in so many seconds, in a thread, until the block is left."""
    found, over = Samples(), threading.Event()

    def take() -> None:
        while not over.wait(every):
            found.taken.append(look())

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
