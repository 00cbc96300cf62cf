"""What a Site's watcher reports: `status.watch`, which watchers write and the operator reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict

from bfinfra.model.records import dataclass
from bfinfra.model.redact import clean
from bfinfra.operator.result import Moved

SHOWN = 40  # drifted fields in a status
LONGEST = 300  # characters of a reason


@dataclass(frozen=True)
class Watching:
    """`replica`: who follows the Site, "" for nobody, and `since` when; `following`: whether its servers are
    followed, and `why` they are not, or were not for `blind` seconds before the last report.

    `losses`: how often in a row its replica was lost soon after it took the Site. `generation`: that of the
    Site that is followed. `changed`: when the differences changed last; `digest` of them, "" for none;
    `differences` counts all, `drifted` those that are drift, of which `found` has some. Times are RFC 3339.
    """

    replica: str = ""
    since: str = ""
    following: bool = False
    why: str = ""
    blind: float = 0.0
    losses: int = 0
    generation: int = 0
    changed: str = ""
    digest: str = ""
    differences: int = 0
    drifted: int = 0
    found: tuple[Moved, ...] = ()

    @classmethod
    def of(cls, status: Mapping[str, object]) -> Watching:
        """The report in a Site's status; an empty one where there is none."""
        given = status.get("watch")
        watch = given if isinstance(given, Mapping) else {}
        drift = watch.get("drift") or {}
        return cls(
            replica=str(watch.get("replica") or ""),
            since=str(watch.get("since") or ""),
            following=bool(watch.get("following")),
            why=str(watch.get("why") or ""),
            blind=float(watch.get("blindSeconds") or 0),
            losses=int(watch.get("losses") or 0),
            generation=int(watch.get("observedGeneration") or 0),
            changed=str(watch.get("changed") or ""),
            digest=str(watch.get("digest") or ""),
            differences=int(watch.get("differences") or 0),
            drifted=int(drift.get("count") or 0),
            found=tuple(
                Moved(*(str(each.get(name) or "") for name in ("address", "field", "cause", "by")))
                for each in drift.get("found") or ()
            ),
        )

    def status(self) -> dict[str, object]:
        """The same as a merge patch of the status."""
        drift = {"count": self.drifted, "found": clean([asdict(each) for each in self.found[:SHOWN]])}
        return {
            "watch": {
                "replica": self.replica,
                "since": self.since,
                "following": self.following,
                "why": clean(self.why[:LONGEST]),
                "blindSeconds": round(self.blind, 3),
                "losses": self.losses,
                "observedGeneration": self.generation,
                "changed": self.changed,
                "digest": self.digest,
                "differences": self.differences,
                "drift": drift if self.drifted else None,
            }
        }


def moment(seconds: float) -> str:
    """Seconds since the epoch, to the millisecond, as Kubernetes writes them."""
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec='milliseconds')[:23]}Z"
