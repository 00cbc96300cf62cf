"""The vSphere Kubernetes Service of a supervisor: classes with their variables, releases and images, what its
webhooks rewrite and refuse, and clusters that become what is written.
"""
