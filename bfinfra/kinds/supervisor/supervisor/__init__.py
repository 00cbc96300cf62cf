"""vSphere with Tanzu on a cluster: adopted where it runs, enabled where a site says how, never disabled by
itself. (The solution: VMware Kubernetes platforms on a GPU cluster.)
"""
