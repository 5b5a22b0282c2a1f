"""The package kernelscope: what a Python program sees of the program, and what it does to kernels."""
