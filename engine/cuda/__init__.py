"""NVIDIA GPUs: the driver, memory, streams, graphs, and the sessions on them."""
