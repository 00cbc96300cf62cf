"""Components of a cluster's image in vSphere Lifecycle Manager, such as NVIDIA's vGPU driver. (RDG for
PVRDMA, "vGPU Deployment and Configuration".)
"""
