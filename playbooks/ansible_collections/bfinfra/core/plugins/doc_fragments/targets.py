# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules take that can be about a part of a site."""

    DOCUMENTATION = r"""
options:
  targets:
    description:
      - Addresses, such as V(tanzu_cluster/cluster-01), of the resources that it is about, with what must be
        done before them; without any it is the whole site.
    type: list
    elements: str
    default: []
"""
