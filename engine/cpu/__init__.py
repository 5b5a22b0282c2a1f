"""The CPU: sessions of our NumPy kernels, the threads that share their steps, and the host's caches."""
