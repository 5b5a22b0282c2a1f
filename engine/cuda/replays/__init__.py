"""Ways to replay a pass faster than its kernels one after the other: kernels that begin early (`overlap`),
and several steps as one kernel (`one_kernel`). Each is tried, and taken only where it is faster."""
