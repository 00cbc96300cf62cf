"""A VM class: the CPUs, memory and GPUs of a VM in a namespace. (The solution: VMware Kubernetes platforms on
a GPU cluster.)
"""
