"""Consecutive steps of a net as one kernel: which steps can be part of it, how the work is shared out, and
its text.

- `layers`: what each step does to one image. `plan`: how images, threads and blocks may share the work on a
  device, in terms of `records`. `tensor`: convolutions on tensor cores.
- `text`: what the compiler is told (kernels/cuda/net/one_kernel.cu, net.cuh), the launch, and the packed
  weights.
- Only the first and the last tensor are in device memory; the tensors in between stay in shared memory.
  `engine.cuda.replays.one_kernel` tries it.
"""
