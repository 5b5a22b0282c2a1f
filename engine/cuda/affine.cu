// Pixels to what a model takes, in front of its first step: y = factor · x + offset, one of each a channel, so that
// bytes cross the bus and not floats. Rounded after each of the two, as it is done on the host.
//
// A thread has four values, which are one word to read and one vector to write.

extern "C" __global__ void affine(const unsigned char* __restrict__ x, float* __restrict__ y, int size, float f0,
                                  float f1, float f2, float o0, float o1, float o2) {
    int at = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= size) return;
    unsigned char pixels[4];
    int count = min(4, size - at);
    if (count == 4) {
        *(uchar4*)pixels = *(const uchar4*)(x + at);
    } else {
        for (int j = 0; j < count; j++) pixels[j] = x[at + j];
    }
    float made[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int channel = (at + j) / INNER % CHANNELS;
        float factor = channel == 0 ? f0 : channel == 1 ? f1 : f2;
        float offset = channel == 0 ? o0 : channel == 1 ? o1 : o2;
        made[j] = j < count ? __fadd_rn(__fmul_rn((float)pixels[j], factor), offset) : 0.0f;
    }
    if (count == 4) {
        *(float4*)(y + at) = make_float4(made[0], made[1], made[2], made[3]);
    } else {
        for (int j = 0; j < count; j++) y[at + j] = made[j];
    }
}
