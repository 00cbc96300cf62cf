"""Linux machines behind SSH: files, packages and services as data. They run no programs: `programs`,
`modules` and `shell` contain what they answer.
"""

from bfinfra.sandbox.linux.machines import LinuxMachines

__all__ = ["LinuxMachines"]
