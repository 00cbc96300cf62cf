"""Linux machines behind SSH: files, packages and services as data. No program runs: `shell` parses each
command, `programs` and `modules` make its answer.
"""

from bfinfra.sandbox.linux.machines import LinuxMachines

__all__ = ["LinuxMachines"]
