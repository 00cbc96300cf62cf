# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules take that may delete and disrupt."""

    DOCUMENTATION = r"""
options:
  allow_delete:
    description:
      - Addresses, such as V(tanzu_cluster/cluster-01), of what may be deleted or replaced, or V(all).
      - What holds other people's objects must be named itself.
    type: list
    elements: str
    default: []
  allow_disruption:
    description:
      - Addresses of what may be rebooted or power-cycled, or V(all).
    type: list
    elements: str
    default: []
"""
