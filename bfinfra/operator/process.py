"""What the operator and the watchers do as processes: their log, and their way into the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from bfinfra.backends.kubernetes import incluster, kubeconfig
from bfinfra.backends.kubernetes.access import Access
from bfinfra.model.secret import Secret


def log_to_stderr() -> None:
    """A line for what happens, and nothing of the libraries' requests."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
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
