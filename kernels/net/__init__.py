"""A run of a net's steps as one kernel: what it can be made of, how it is shared out, its text.

`layers` says which steps can be part of one, `plan` how images, threads and blocks may be shared out on a
device (`records`: as what), `text` what the compiler is told (kernels/cuda/net/one_kernel.cu, net.cuh). The
first and the last tensor alone are in the device's memory; what lies between stays in shared memory.
`engine.cuda.replays.one_kernel` tries it.
"""
