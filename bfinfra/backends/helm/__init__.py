"""Helm as a renderer: a chart and values in, manifests out. It contacts no cluster and keeps no
state. Charts come from files, or from registries.
"""

from bfinfra.backends.helm.chart import ChartFile, asked_of, defaults_of, read, version_of
from bfinfra.backends.helm.registry import Charts, OciChart, kept
from bfinfra.backends.helm.render import Capabilities, Release, template
from bfinfra.backends.helm.values import merged, typed

__all__ = [
    "Capabilities",
    "ChartFile",
    "Charts",
    "OciChart",
    "Release",
    "asked_of",
    "defaults_of",
    "kept",
    "merged",
    "read",
    "template",
    "typed",
    "version_of",
]
