"""NVIDIA's device plug-in in a cluster, by which nodes offer their GPUs to pods. (RDG for PVRDMA: its workers
ask for `nvidia.com/gpu`.)
"""
