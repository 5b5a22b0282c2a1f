"""Ways to replay a pass faster than its kernels one after the other, each of which is tried: kernels that
begin early (`overlap`), and several steps as one kernel (`one_kernel`)."""
