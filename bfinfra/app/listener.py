"""The listeners of a watch: the terminal, the webhook, a page, metrics, systemd."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bfinfra.app.sight import Sight


class Listener:
    """A listener that does nothing. Its methods are called from the thread that follows the servers, so
    they return at once.
    """

    def report(self, sight: Sight) -> None:
        """Drift started or ended, or servers are followed again."""

    def interrupted(self, why: str, blind: float) -> None:
        """A server is not followed any more, for so many seconds already, until a report without `lost`."""

    def polled(self, why: str, interval: float) -> None:
        """The account may list a kind of object but not watch it: it is read each `interval` seconds."""

    def turned(self, changes: int) -> None:
        """Servers have reported so many changes since the last turn. There is a turn a second at least,
        but for the time in which a survey is made again.
        """

    def beat(self) -> None:
        """The watch works, even if it has no turn: it waits for a server. Called from any thread."""

    def close(self) -> None:
        """The watch has ended."""


class Listeners(Listener):
    """Several of them. `following`: whether the servers are followed now."""

    def __init__(self, each: Iterable[Listener]) -> None:
        self._each: Sequence[Listener] = tuple(each)
        self.following = False

    def report(self, sight: Sight) -> None:
        """Note whether the servers are followed, and pass it on."""
        self.following = not sight.lost
        for each in self._each:
            each.report(sight)

    def interrupted(self, why: str, blind: float) -> None:
        """Note it, and pass it on."""
        self.following = False
        for each in self._each:
            each.interrupted(why, blind)

    def polled(self, why: str, interval: float) -> None:
        """Pass it on."""
        for each in self._each:
            each.polled(why, interval)

    def turned(self, changes: int) -> None:
        """Pass it on."""
        for each in self._each:
            each.turned(changes)

    def beat(self) -> None:
        """Pass it on."""
        for each in self._each:
            each.beat()

    def close(self) -> None:
        """Close them in the reverse order."""
        for each in reversed(self._each):
            each.close()
