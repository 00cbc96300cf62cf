"""A virtual machine of a supervisor's VM Service, such as a Deep Learning VM."""
