"""The Kubeflow MPI operator, which makes MPI jobs run. (RDG for PVRDMA, "Install Kubeflow MPI Operator".)"""
