"""One declarative file for GPU sites on vSphere and Tanzu."""

__version__ = "0.1.0"
