"""The frequency of a run, the same for a timer, a crontab and a CronJob."""

from __future__ import annotations

import hashlib

from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.records import dataclass

MINUTES = {f"{n}m": (n, 0) for n in (5, 6, 10, 12, 15, 20, 30)}
HOURS = {f"{n}h": (0, n) for n in (1, 2, 3, 4, 6, 8, 12)}
DAY = {"24h": (0, 24), "1d": (0, 24)}
STEPS = MINUTES | HOURS | DAY
"""The intervals that divide an hour or a day: minutes, hours."""


@dataclass(frozen=True)
class Schedule:
    """Every `minutes` or `hours`, `offset` minutes past. Each site has its own offset, so that many sites
    don't start at once.
    """

    minutes: int
    hours: int
    offset: int

    @classmethod
    def every(cls, text: str, site: str) -> Schedule:
        """The schedule of `15m`, `1h`, `1d`. Raises BfinfraError if it divides neither an hour nor a day."""
        if text not in STEPS:
            raise BfinfraError(
                Problem(
                    f"every {text}: no such interval",
                    why="only intervals that divide an hour or a day start at the same times each day",
                    next=f"one of: {', '.join(STEPS)}",
                )
            )
        minutes, hours = STEPS[text]
        return cls(
            minutes, hours, int.from_bytes(hashlib.sha256(site.encode()).digest()[:4]) % (minutes or 60)
        )

    @property
    def seconds(self) -> int:
        """Seconds between two starts."""
        return 60 * self.minutes + 3600 * self.hours

    @property
    def cron(self) -> str:
        """The five fields of a crontab."""
        if self.minutes:
            return f"{self.offset}-59/{self.minutes} * * * *"
        return (
            f"{self.offset} {'*' if self.hours == 1 else '0' if self.hours == 24 else f'*/{self.hours}'} * "
            "* *"
        )

    @property
    def calendar(self) -> str:
        """Systemd's OnCalendar, in UTC."""
        if self.minutes:
            return f"*-*-* *:{self.offset:02}/{self.minutes}:00 UTC"
        return (
            f"*-*-* {'*' if self.hours == 1 else '00' if self.hours == 24 else f'00/{self.hours}'}"
            f":{self.offset:02}:00 UTC"
        )
