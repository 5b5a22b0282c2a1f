/*
op = "lrn_pool"
rung = 5
name = "nhwc_bands_bytes"
idea = "Between steps in eight bits: numbers are brought to float32 as they are read and back as they are written, so that a quarter of the bytes move; what is too near to half-way between two steps is worked out again in double precision."
launch = "nhwc_bands"
overlaps = true
reads = ["nchw float32", "nhwc bytes"]
writes = ["nchw float32", "nhwc bytes"]
[defines]
EACH = 16   # channels of a chunk
READS = 0   # how x lies: by its place in `reads`
WRITES = 0  # and y
CHUNKS_AT_ONCE = 4  # chunks of channels of a block
OUTS = 2    # rows of outputs of a block; this line and those below: the launch sets them
TILE = 4    # outputs of a row of a block
X_TYPE = 1  # of x
TO = 1      # of y
SIZE = 5
THREE_QUARTERS = 0  # whether that is the exponent
AFTER = 0
KIND = 0
C = 16
H = 8
W = 8
OUT_H = 4
OUT_W = 4
KH = 2
KW = 2
STRIDE_H = 2
STRIDE_W = 2
PAD_TOP = 0
PAD_LEFT = 0
PAD_BOTTOM = 0
PAD_RIGHT = 0
COUNT_PAD = 0
WIDE = 0
[needs]
dtype = ["uint8", "int8"]
kind = ["max"]
dilation = 1
kernel_max = 8
size_max = 9
*/
#include "nhwc_pool.cuh"

#define LOW (TO == DTYPE_UINT8 ? 0 : -128)
#define HIGH (TO == DTYPE_UINT8 ? 255 : 127)

// Pooled values of whole numbers less their zero point, still to be multiplied by the scale of x, to those of y.
struct Rounded {
    const Given* x;
    const LrnPoolParams& p;
    float step;  // of x, in steps of y

    __device__ __forceinline__ int less_zero(unsigned image, int pixel, int channel) const {
        const index_t at = READS ? ((index_t)image * (H * W) + pixel) * (ALL_CHUNKS * EACH) + channel
                                 : ((index_t)image * C + channel) * (H * W) + pixel;
        return x[at] - p.x_zero;
    }
    // A pixel of the normalisation, with the digits of double precision; sums of squares of whole numbers are exact.
    __device__ double normal(unsigned image, int pixel, int channel) const {
        int squares = 0;
        for (int c = max(0, channel - BEFORE); c <= min(C - 1, channel + BEHIND); ++c) {
            const int v = less_zero(image, pixel, c);
            squares += v * v;
        }
        const double step = p.x_scale, sum = (double)p.bias + (double)p.alpha / SIZE * (squares * step * step);
        return less_zero(image, pixel, channel) * step * pow(sum, -(double)p.beta);
    }
    __device__ __noinline__ double pooled(unsigned image, int oy, int ox, int channel) const {
        double most = __longlong_as_double(0xfff0000000000000ll);  // below all
        for (int r = 0; r < KH; ++r)
            for (int s = 0; s < KW; ++s) {
                const int iy = oy * STRIDE_H - PAD_TOP + r, ix = ox * STRIDE_W - PAD_LEFT + s;
                if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
                const double v = normal(image, iy * W + ix, channel);
                most = v > most ? v : most;
            }
        return most;
    }
    __device__ __forceinline__ float operator()(float v, unsigned image, int oy, int ox, int channel) const {
        const float q = v * step;
        float whole = rintf(q);
        // float32 and approximate roots leave 17 bits at least: where so small an error reaches half-way, it counts.
        if (!(fabsf(q - whole) + fabsf(q) * 0x1p-17f < 0.5f) && !(fabsf(q) > 1024.0f))
            whole = (float)rint(pooled(image, oy, ox, channel) / (double)p.out_scale);
        whole += p.out_zero;
        return whole < LOW ? LOW : whole > HIGH ? HIGH : whole;
    }
};

// The pointers are those of every such kernel; what lies there are bytes.
extern "C" __global__ void lrn_pool(const float* __restrict__ x, float* __restrict__ y, const LrnPoolParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    const float step = p.x_scale;
    const Given* bytes = reinterpret_cast<const Given*>(x);
    const Rounded rounded = {bytes, p, p.x_scale / p.out_scale};
    pool_band(bytes, reinterpret_cast<Made*>(y), p.scale * step * step, p.bias, p.beta, (float)p.x_zero, rounded);
}
