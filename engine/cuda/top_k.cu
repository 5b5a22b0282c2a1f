// The best classes of each row of scores, the best first: a warp a row. Of equal scores the lower class goes first,
// and each round takes the best of those that come after the one before it.

extern "C" __global__ void top_k(const float* __restrict__ scores, float* __restrict__ values,
                                 int* __restrict__ places, int rows, int classes) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* mine = scores + (size_t)row * classes;
    float before = 0.0f;
    int taken = -1;
    for (int round = 0; round < K; round++) {
        float best = 0.0f;
        int at = -1;
        for (int i = lane; i < classes; i += 32) {
            float score = mine[i];
            bool left = taken < 0 || score < before || (score == before && i > taken);
            if (left && (at < 0 || score > best)) {
                best = score;
                at = i;
            }
        }
        for (int step = 16; step; step /= 2) {
            float other = __shfl_down_sync(~0u, best, step);
            int its = __shfl_down_sync(~0u, at, step);
            if (its >= 0 && (at < 0 || other > best || (other == best && its < at))) {
                best = other;
                at = its;
            }
        }
        before = __shfl_sync(~0u, best, 0);
        taken = __shfl_sync(~0u, at, 0);
        if (lane == 0) {
            values[(size_t)row * K + round] = before;
            places[(size_t)row * K + round] = taken;
        }
    }
}
