"""CUDA rungs in Python: `kernels/cuda/<op>/NN_name.py`, whose header names a `language`.

A language is only a compiler: from a rung's file it makes a cubin with one kernel called `<op>`, and says how
much shared memory that needs. From there on such a rung is like every other: its launch shape
(kernels.launch) gives grid, block and defines, and the session launches the cubin. No Python of a kernel runs
near a launch, a clock or an answer.

- `known`: the languages, found in `compilers/`, one module each. `signature`: the arguments of a rung's
  function, read from its text. `compiling`: cubin, PTX and the assembler's messages, from the cache or made
  now.
- `child`: the isolated process that runs the rung's file and the compiler (kernels.confine); where a compiler
  stops at PTX, it also gives the PTX our name and links it to a cubin.
"""
