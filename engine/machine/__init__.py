"""The machine: the host's cores, caches, memory and load, and the driver of the GPU."""
