"""The account for a container registry, as an image pull Secret in a cluster's namespaces. (Pod
specification, imagePullSecrets.)
"""
