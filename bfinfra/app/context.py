"""The settings of a run: its servers, and how it retries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bfinfra.deprecated import with_old_field
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.stop import Stop
from bfinfra.model.surveying import SurveyProgress

if TYPE_CHECKING:
    from bfinfra.backends.transport import Middleware, Transport
    from bfinfra.sandbox import Running


@with_old_field("patience")
@dataclass(frozen=True)
class RunContext:
    """The sandbox or the live servers, further transport middleware, the retry policy, what stops the run,
    and what shows the progress of a survey.
    """

    sandbox: Running | None = None
    middleware: tuple[Middleware, ...] = ()
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    stop: Stop = field(default_factory=Stop)
    surveying: Callable[[SurveyProgress], AbstractContextManager[object]] = contextlib.nullcontext

    def transport(self, *, read_only: bool = True, timeout: float | None = None) -> Transport:
        """The run's way to its servers. `timeout`: seconds to wait for an answer."""
        from bfinfra.backends.outages import Outages
        from bfinfra.backends.transport import Transport

        # who wants an answer within a time waits for no server
        lasts = 0.0 if timeout else self.retry.lasts
        return Transport(
            read_only=read_only,
            route=self.sandbox.lookup if self.sandbox else None,
            middleware=self.middleware,
            timeout=timeout,
            outages=Outages(lasts, self.retry.rest, self.stop.check),
        )


LIVE = RunContext()
"""The live servers."""
