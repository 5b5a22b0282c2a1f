"""The machine as every engine has to know it: the host's cores and caches, the driver of its GPU."""
