# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What every module of the collection takes: which site, with which secrets, in the world or in the
    sandbox.
    """

    DOCUMENTATION = r"""
requirements:
  - bfinfra, in the interpreter that runs the module
options:
  site:
    description:
      - The site's files, or folders of files, on the machine that runs the module.
      - Several are merged.
    type: list
    elements: path
    required: true
  overlays:
    description:
      - Files or folders that are laid on the site, field by field; the later ones count.
    type: list
    elements: path
    default: []
  values:
    description:
      - Values that the site declares, by name; they count before those of O(value_files).
      - A value is no secret; a secret is given by O(secrets).
    type: dict
    default: {}
  value_files:
    description:
      - YAML files of such values; the later ones count.
    type: list
    elements: path
    default: []
  secrets:
    description:
      - Values for the site's references to the environment, by the names of the variables.
      - Without it they are read from the module's environment, see the C(environment) keyword.
      - Never shown, and handed on to nobody but the servers that they are for.
    type: dict
  sandbox:
    description:
      - Run on the embedded sandbox of the site's world instead of the real servers; it is started where it
        doesn't run.
    type: bool
    default: false
  world:
    description:
      - World file of the sandbox, where it isn't the one that belongs to the site; implies O(sandbox=true).
    type: path
"""
