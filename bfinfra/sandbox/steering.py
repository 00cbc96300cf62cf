"""The calls by which a test, or `bfinfra sandbox`, controls a running sandbox."""

from __future__ import annotations

import http.client
import json
import warnings
from collections.abc import Mapping
from typing import Any

from bfinfra.sandbox.faults import old_names

TIMEOUT = 60  # seconds


class Steering:
    """The control API's calls; `control` is its host:port."""

    control: str

    def reset(self) -> None:
        """The world as at its start, the files that sites name among it; no faults, nothing counted."""
        self._ask("POST", "/reset")

    def tally(self) -> Mapping[str, Any]:
        """{"total", "written", "last", "calls": {api: {method: n}}, "writes": {api: {method: n}}}; `last`:
        when the last write began, in seconds since 1970.
        """
        found: Mapping[str, Any] = self._ask("GET", "/tally")
        return found

    def clear_tally(self) -> None:
        """Count from zero."""
        self._ask("DELETE", "/tally")

    def faults(self, *rules: Mapping[str, object]) -> None:
        """Add fault rules; see `bfinfra.sandbox.faults`."""
        for renamed in old_names(rules):
            warnings.warn(f"a fault's {renamed}", DeprecationWarning, stacklevel=2)
        self._ask("POST", "/faults", list(rules))

    def clear_faults(self) -> None:
        """Drop all rules."""
        self._ask("DELETE", "/faults")

    def world(self) -> Any:
        """Everything in the world, without generated ids and times: two equal worlds dump equal."""
        return self._ask("GET", "/world")

    def change(self, what: Mapping[str, object]) -> None:
        """Change the world without any client; see `bfinfra.sandbox.changes`."""
        self._ask("POST", "/change", what)

    def pace(self, pace: float) -> None:
        """1 = real time, 0 = no waiting."""
        self._ask("POST", "/pace", {"pace": pace})

    def sessions(self) -> Any:
        """Open sessions by API."""
        return self._ask("GET", "/sessions")

    def expire(self) -> None:
        """End every session and token now."""
        self._ask("POST", "/expire")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        host, _, port = self.control.rpartition(":")
        line = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT)
        try:
            line.request(method, path, None if body is None else json.dumps(body))
            answer = line.getresponse()
            data = answer.read()
        finally:
            line.close()
        if answer.status >= 300:
            raise RuntimeError(
                f"the sandbox refuses {method} {path}: {data.decode(errors='replace').strip()}"
            )
        return json.loads(data) if data else None
