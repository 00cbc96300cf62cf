"""NVIDIA's container toolkit on Linux machines: package, and the container runtime that knows it. (RDG for
PVRDMA, "Installing NVIDIA Container Toolkit".)
"""
