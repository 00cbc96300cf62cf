"""The embedded world: servers on loopback that speak the real wire protocols, in a process of their own."""

from bfinfra.sandbox.process import Running, SandboxError, reset, running, start, stop

__all__ = ["Running", "SandboxError", "reset", "running", "start", "stop"]
