"""Linux machines by SSH: read by ssh itself, one command a machine; changed by roles of `playbooks/` through
Ansible.
"""

from __future__ import annotations

from bfinfra.backends.ansible.hosts import LinuxHosts
from bfinfra.backends.ansible.play import Played
from bfinfra.backends.ansible.reading import Answer

__all__ = ["Answer", "LinuxHosts", "Played"]
