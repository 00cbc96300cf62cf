"""A distributed switch with one RDMA adapter of each host as its uplink. (RDG for PVRDMA, "vSphere Network
Architecture".)
"""
