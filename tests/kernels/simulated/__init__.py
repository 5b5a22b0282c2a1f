"""CUDA kernels run without a GPU: answers of the shipped rungs, planted mistakes, and what is missing."""
