# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules that write take besides."""

    DOCUMENTATION = r"""
options:
  parallelism:
    description:
      - How many resources are worked on at a time.
    type: int
    default: 10
  deadline:
    description:
      - Seconds that a resource may take to become ready; each kind has its own where nothing is said.
    type: int
"""
