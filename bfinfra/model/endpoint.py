"""The endpoint of a Kubernetes API, as data: states contain it, backends use it."""

from __future__ import annotations

from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret

SUPERVISOR_PORT = 6443
"""Port of the Kubernetes API of a supervisor, and of each cluster in it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Kubernetes API.

    `server`: the supervisor's host[:port] for `/wcp/login`, or "" for a kubeconfig. `namespace`/`guest`: set
    for a guest cluster in a supervisor namespace; only `namespace` for that namespace itself. `kubeconfig`: a
    secret reference whose value is a kubeconfig; `context` is its context ("": the current one).
    """

    server: str = ""
    namespace: str = ""
    guest: str = ""
    kubeconfig: Secret | None = None
    context: str = ""

    def __str__(self) -> str:
        if self.kubeconfig is not None:
            return f"kubeconfig {self.kubeconfig}" + (f" context {self.context}" if self.context else "")
        return "/".join(part for part in (self.server, self.namespace, self.guest) if part)
