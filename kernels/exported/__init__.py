"""A rung as an operator of another library: a shared library that needs nothing of this program.

`operator` says what is exported: the kernel at some sizes, its inputs, and what a launch or a call is made
of. `cuda` and `cpu` make one of a rung: a CUDA kernel as cubin and PTX, a compiled CPU kernel as machine code
(bound by `child`, a process of its own, since `bind` is Python of whoever wrote it). `library` writes it as
one C file and builds that with the machine's compiler. `c/` has the parts of that file: `cuda.c` or `cpu.c`
runs the kernel, `onnxruntime.c` is a custom operator of ONNX Runtime; other programs call `kernelscope_run`.
`torch_module` writes the module that does so for PyTorch.
"""
