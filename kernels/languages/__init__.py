"""CUDA rungs in Python: `kernels/cuda/<op>/NN_name.py`, whose header names a `language`.

A language is a compiler and nothing more: from a rung's file it makes a cubin with one kernel called
`<op>`, and says how much shared memory that takes. From there on such a rung is as every other: its launch
shape (kernels.launch) says grid, block and defines, and the session launches the cubin; no Python of a
kernel is near the launch, the clock or an answer.

- `known`: the languages, found in `compilers/`, one module each. `signature`: what a rung's function
  takes, read from its text. `compiling`: cubin, PTX and what the assembler said, from the cache or made now.
- `linking`: PTX under our name, and as a cubin, where a language's compiler stops at PTX.
- `child`: the process apart that runs the rung's file and the compiler, within walls (kernels.confine).
"""
