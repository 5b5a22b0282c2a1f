// x of a convolution as chunks of EACH channels of a pixel (nhwc.cuh), whether it lies so (READS) or as NCHW float32.
//
// Such an x is first laid out anew in scratch memory (conv_lay_out), and with FOLD > 1, the stride, so that FOLD × FOLD
// pixels become one of as many times the channels: few channels then fill chunks, and what is left is a convolution of
// stride 1 without padding, by a window as many times smaller. Of an x in groups each group is filled up to whole chunks.
//
// With OPERANDS = 2 a number is the sum of two float16 (halves_split.cuh), scaled by what conv_largest found of its image:
// of every pixel the big ones lie first, all groups' chunks, and then the small ones. With SCALED it is one float16 that
// was scaled so; such an x is laid out anew in any case, READS then says that it lies as chunks of four float32.
#pragma once
#include "common.cuh"
#include "halves_split.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"
#include "warp.cuh"

#ifndef OPERANDS
#define OPERANDS 1  // of a number: two where it is the sum of two float16
#endif
#ifndef SCALED
#define SCALED (OPERANDS > 1)
#endif

#define AS_READ (READS && !SCALED)  // the chunks are those that x lies in
#include "conv_source.cuh"

#define ACROSS 8          // chunks of a block that lays x out
#define AT_ONCE_FOLDED 4  // and of a warp that folds it

// The largest numbers of the images' shares; they lie behind the chunks.
__device__ __forceinline__ float* shares_of(float* workspace, const Source& source, int images) {
    return workspace + 4 * source.size(images);
}
#if SCALED
#define SHARES_IN(workspace, p) shares_of(workspace, Source(p), p.n)
#include "conv_largest.cuh"
#endif

// A chunk of an image in its type; of one with two operands the other lies so many chunks further on.
__device__ __forceinline__ void put_chunk(uint4* to, int beside, const float (&v)[EACH], const float* shares,
                                          int image) {
#if SCALED
    put_scaled(v, scale_by(largest(shares, image)), to, beside);
#else
    *to = to_chunk(v);
#endif
}

// Four channels of a pixel, of an x that lies in chunks of as many float32.
#define FOUR 4
__device__ __forceinline__ void four_of_pixel(float* v, const float* x, int pixel, int channel, int channels) {
    const int fours = (channels + FOUR - 1) / FOUR;
    const float4 four = reinterpret_cast<const float4*>(x)[(index_t)pixel * fours + channel / FOUR];
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

// NCHW float32 to NHWC. With FOLD, where a pixel has few chunks: a warp eight pixels × four chunks, which are pieces of
// as many rows of the image. Else a block 32 pixels × 8 chunks: lanes read neighbouring pixels, and write neighbouring
// chunks.
extern "C" __global__ void __launch_bounds__(256)
    conv_lay_out(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ uint4 tile[FOLD > 1 ? 1 : OPERANDS * LANES * ACROSS];
    let_next_begin();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const Source source(p);
    const int area = source.h * source.w, pixels = p.n * area;
    const index_t plane = (index_t)p.h * p.w;
    uint4* to = reinterpret_cast<uint4*>(workspace);
    const float* shares = shares_of(workspace, source, p.n);
    const int own = source.pixel / OPERANDS;  // chunks of a pixel
    if (FOLD > 1) {
        const int pixel = (blockIdx.x * 256 + threadIdx.x) / AT_ONCE_FOLDED;
        if (pixel >= pixels) return;
        const int image = pixel / area, place = pixel % area;
        const int top = place / source.w * FOLD - p.pad_top, left = place % source.w * FOLD - p.pad_left;
        const float* from = x + image * p.c * plane;
        for (int chunk = threadIdx.x % AT_ONCE_FOLDED; chunk < own; chunk += AT_ONCE_FOLDED) {
            float v[EACH] = {};
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int channel = chunk * EACH + e;
                const int iy = top + channel / FOLD % FOLD, ix = left + channel % FOLD;
                if (channel < source.depth && (unsigned)iy < (unsigned)p.h && (unsigned)ix < (unsigned)p.w)
                    v[e] = from[channel / (FOLD * FOLD) * plane + iy * p.w + ix];
            }
            put_chunk(&to[(index_t)pixel * source.pixel + chunk], own, v, shares, image);
        }
        return;
    }
    const int first_pixel = blockIdx.x * LANES, first_chunk = blockIdx.y * ACROSS;
#if READS && SCALED
    {
        const int pixel = first_pixel + threadIdx.x / ACROSS, chunk = first_chunk + threadIdx.x % ACROSS;
        if (pixel >= pixels || chunk >= own) return;
        const int channel = chunk / source.chunks * source.depth + chunk % source.chunks * EACH;
        float v[EACH] = {};
#pragma unroll
        for (int e = 0; e < EACH; e += FOUR)
            if (channel + e < p.c) four_of_pixel(v + e, x, pixel, channel + e, p.c);
        put_chunk(&to[(index_t)pixel * source.pixel + chunk], own, v, shares, pixel / area);
        return;
    }
#endif
    {
        const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
        const int pixel = first_pixel + lane, chunk = first_chunk + row;
        const int image = pixel < pixels ? pixel / area : 0;
        float v[EACH] = {};
        if (pixel < pixels && chunk < own) {
            const int place = pixel % area;
            const int group = chunk / source.chunks, first = chunk % source.chunks * EACH;
            const float* from = x + image * p.c * plane;
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (first + e < source.depth) v[e] = from[(group * source.depth + first + e) * plane + place];
        }
        put_chunk(&tile[lane * ACROSS + (row ^ (lane & 7))], LANES * ACROSS, v, shares, image);
    }
    __syncthreads();
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    const int pixel = first_pixel + row, chunk = first_chunk + column;
    if (pixel < pixels && chunk < own)
#pragma unroll
        for (int operand = 0; operand < OPERANDS; ++operand)
            to[(index_t)pixel * source.pixel + operand * own + chunk] =
                tile[(operand * LANES + row) * ACROSS + (column ^ (row & 7))];
}
