"""Container images loaded onto Linux machines, for clusters without a registry. (Bitfusion on Kubernetes:
save the images as tar files, copy them to each node, load them.)
"""
