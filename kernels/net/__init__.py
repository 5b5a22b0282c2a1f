"""A run of a net's steps as one kernel: what it can be made of, how it is shared out, its text.

`layers` says which steps can be part of one, `plan` how images, threads and blocks may be shared out on a
device (`records`: as what; `tiles`: a convolution, `tensor`: one on tensor cores), `text` what the compiler
is told (kernels/cuda/net/one_kernel.cu, net.cuh), `packed` how the weights lie. The first and the last tensor
alone are in the device's memory; what lies between stays in shared memory. `engine.cuda.replays.one_kernel`
tries it.
"""
