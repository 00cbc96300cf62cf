"""The sandbox: servers on loopback that speak the real wire protocols, in a process of their own."""

from pathlib import Path

from bfinfra.sandbox.process import Running, SandboxError, reset, running, start, stop

__all__ = ["SMALL_WORLD", "Running", "SandboxError", "reset", "running", "start", "stop"]

_HERE = Path(__file__).parent
_WORLDS = (
    _HERE / "worlds" if (_HERE / "worlds").is_dir() else _HERE.parents[1] / "specs/worlds"
)  # packaged, or a checkout
SMALL_WORLD = _WORLDS / "small.yaml"
"""A world for tests: two small clusters, no waiting."""
