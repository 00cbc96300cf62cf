"""Container images loaded onto Linux machines, where no registry brings them. (Bitfusion on Kubernetes: save
the images as tar files, copy them to each node, load them.)
"""
