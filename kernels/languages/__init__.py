"""CUDA rungs in Python: `kernels/cuda/<op>/NN_name.py`, whose header names a `language`.

A language is a compiler and nothing more: from a rung's file it makes a cubin with one kernel called
`<op>`, and says how much shared memory that takes. From there on such a rung is as every other: its launch
shape (kernels.launch) says grid, block and defines, and the session launches the cubin; no Python of a
kernel is near the launch, the clock or an answer.

- `known`: the languages, found in `compilers/`, one module each. `signature`: what a rung's function
  takes, read from its text. `compiling`: cubin, PTX and what the assembler said, from the cache or made now.
- `child`: the isolated process that runs the rung's file and the compiler (kernels.confine); where a
  compiler stops at PTX, it also gives the PTX our name and links it to a cubin.
"""
