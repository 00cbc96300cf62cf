"""A virtual machine cloned from a template, with adapters for RDMA and vGPUs. (RDG for PVRDMA, "Virtual
Machine Configuration".)
"""
