"""The CPU: sessions of our kernels, the threads that share their steps, and the host's caches."""
