"""vSphere with Tanzu on a cluster: adopted if it runs, enabled if a site describes how, disabled only if a
site asks for it. (The solution: VMware Kubernetes platforms on a GPU cluster.)
"""
