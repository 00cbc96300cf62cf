"""The Kubeflow MPI operator, which runs MPI jobs. (RDG for PVRDMA, "Install Kubeflow MPI Operator".)"""
