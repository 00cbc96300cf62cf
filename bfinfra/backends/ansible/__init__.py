"""Linux machines by SSH: ssh itself reads, with one command for each machine; roles of `playbooks/` change
them through Ansible.
"""

from __future__ import annotations

from bfinfra.backends.ansible.hosts import LinuxHosts
from bfinfra.backends.ansible.play import Played
from bfinfra.backends.ansible.reading import Answer

__all__ = ["Answer", "LinuxHosts", "Played"]
