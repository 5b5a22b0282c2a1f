"""Kernelscope for Python programs: is my kernel right, how fast is it beside the reference, and what holds it
back?

This package is a client. The program itself runs in processes of its own (`kernelscope.program` says how they
are started); nothing of it is imported here.
"""
