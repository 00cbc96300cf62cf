"""Helm as a renderer: a chart and values in, manifests out. It contacts no cluster, keeps no state."""

from bfinfra.backends.helm.chart import ChartFile, asked_of, defaults_of, read
from bfinfra.backends.helm.render import Capabilities, Release, template
from bfinfra.backends.helm.values import merged, typed

__all__ = [
    "Capabilities",
    "ChartFile",
    "Release",
    "asked_of",
    "defaults_of",
    "merged",
    "read",
    "template",
    "typed",
]
