"""A distributed training that MPI starts on GPUs, over RDMA or TCP. (RDG for PVRDMA, "Running the
Application".)
"""
