"""Linux machines behind SSH: files, packages and services as data. They run no programs: what they know of is
in `programs`, `modules` and `shell`.
"""

from bfinfra.sandbox.linux.machines import LinuxMachines

__all__ = ["LinuxMachines"]
