"""An existing Linux machine, by SSH: a place for clients and servers of remote GPUs."""
