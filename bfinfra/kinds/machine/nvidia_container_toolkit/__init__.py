"""NVIDIA's container toolkit on Linux machines: its package, and the container runtime that uses it. (RDG for
PVRDMA, "Installing NVIDIA Container Toolkit".)
"""
