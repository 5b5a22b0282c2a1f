"""Ways to replay a pass faster than its kernels one after the other, each of which is tried: kernels that
begin early (`overlap`), a run of steps as one kernel (`one_kernel`)."""
