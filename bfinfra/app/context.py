"""Where a run takes place, and how patient it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.records import dataclass
from bfinfra.model.stop import Stop
from bfinfra.model.surveying import SurveyProgress

if TYPE_CHECKING:
    from bfinfra.backends.transport import Middleware, Transport
    from bfinfra.sandbox import Running


@dataclass(frozen=True)
class RunContext:
    """The sandbox instead of the live servers, extra middleware of the transport, how to retry, who may stop
    the run, and what shows how far a survey is while it goes on.
    """

    sandbox: Running | None = None
    middleware: tuple[Middleware, ...] = ()
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    stop: Stop = field(default_factory=Stop)
    surveying: Callable[[SurveyProgress], AbstractContextManager[object]] = contextlib.nullcontext

    def transport(self, *, read_only: bool = True, patience: float | None = None) -> Transport:
        """The one way to the run's servers. `patience`: seconds for an answer."""
        from bfinfra.backends.transport import Transport

        return Transport(
            read_only=read_only,
            route=self.sandbox.lookup if self.sandbox else None,
            middleware=self.middleware,
            patience=patience,
            check=self.stop.check,
        )


LIVE = RunContext()
"""The servers that the site names."""
