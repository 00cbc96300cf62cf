"""vSphere with Tanzu on a cluster: adopted if it runs, enabled if a site says how, disabled only if a site
says so. (The solution: VMware Kubernetes platforms on a GPU cluster.)
"""
