"""What the operator and the watchers do as processes: their log, and their way into the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from bfinfra.backends.kubernetes import incluster, kubeconfig
from bfinfra.backends.kubernetes.access import Access
from bfinfra.model.secret import Secret
from bfinfra.render.safe import printed, safe, safe_lines


class OneLine(logging.Formatter):
    """A line for each message, whatever a server or a Site writes into it; a traceback is indented."""

    def format(self, record: logging.LogRecord) -> str:
        """The message with all its names, and the traceback."""
        record.message, record.asctime = safe(record.getMessage()), self.formatTime(record)
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        indented = (f"  {line}" for line in safe_lines(trace, len(trace)))
        return printed("\n".join([self.formatMessage(record), *indented]))


def log_to_stderr() -> None:
    """A line for what happens, and nothing of the libraries' requests."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)


def access(file: str) -> Callable[[], Access]:
    """The credentials for the API server, read again for each login. `file`: a kubeconfig, "" for the pod's
    account.
    """
    if not file:
        return incluster.enter
    path = str(Path(file).absolute())
    return lambda: kubeconfig.read(Secret("file", path))
