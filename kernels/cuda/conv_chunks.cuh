// x of a convolution as chunks of EACH channels of a pixel (nhwc.cuh), whether it lies so (READS) or as NCHW float32.
//
// Such an x is first laid out anew in scratch memory (conv_lay_out), and with FOLD > 1, the stride, so that FOLD × FOLD
// pixels become one of as many times the channels: few channels then fill chunks, and what is left is a convolution of
// stride 1 without padding, by a window as many times smaller. Of an x in groups each group is filled up to whole chunks.
#pragma once
#include "common.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"
#include "warp.cuh"

#define ACROSS 8          // chunks of a block that lays x out
#define AT_ONCE_FOLDED 4  // and of a warp that folds it

// x as the product sees it.
struct Source {
    int depth, chunks;  // channels of a group, and chunks of them
    int pixel;          // chunks of a pixel
    int h, w, kh, kw, stride_h, stride_w, top, left;
    __device__ __forceinline__ Source(const ConvParams& p) {
        const bool folded = FOLD > 1;
        depth = folded ? p.c * FOLD * FOLD : p.c / p.group;
        chunks = chunks_of(depth);
        pixel = p.group * chunks;
        kh = folded ? (p.kh + FOLD - 1) / FOLD : p.kh;
        kw = folded ? (p.kw + FOLD - 1) / FOLD : p.kw;
        h = folded ? p.out_h + kh - 1 : p.h;
        w = folded ? p.out_w + kw - 1 : p.w;
        stride_h = folded ? 1 : p.stride_h;
        stride_w = folded ? 1 : p.stride_w;
        top = folded ? 0 : p.pad_top;
        left = folded ? 0 : p.pad_left;
    }
    // Chunks of the whole batch where it is laid out in scratch memory; partial sums begin behind them.
    __device__ __forceinline__ index_t size(int images) const {
        return READS ? 0 : (index_t)images * h * w * pixel;
    }
};

// NCHW float32 to NHWC. With FOLD, where a pixel has few chunks: a warp eight pixels × four chunks, which are pieces of
// as many rows of the image. Else a block 32 pixels × 8 chunks: lanes read neighbouring pixels, and write neighbouring
// chunks.
extern "C" __global__ void __launch_bounds__(256)
    conv_lay_out(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ uint4 tile[FOLD > 1 ? 1 : LANES * ACROSS];
    let_next_begin();
    wait_for_previous();
    const Source source(p);
    const int area = source.h * source.w, pixels = p.n * area;
    const index_t plane = (index_t)p.h * p.w;
    uint4* to = reinterpret_cast<uint4*>(workspace);
    if (FOLD > 1) {
        const int pixel = (blockIdx.x * 256 + threadIdx.x) / AT_ONCE_FOLDED;
        if (pixel >= pixels) return;
        const int image = pixel / area, place = pixel % area;
        const int top = place / source.w * FOLD - p.pad_top, left = place % source.w * FOLD - p.pad_left;
        const float* from = x + image * p.c * plane;
        for (int chunk = threadIdx.x % AT_ONCE_FOLDED; chunk < source.pixel; chunk += AT_ONCE_FOLDED) {
            float v[EACH] = {};
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int channel = chunk * EACH + e;
                const int iy = top + channel / FOLD % FOLD, ix = left + channel % FOLD;
                if (channel < source.depth && (unsigned)iy < (unsigned)p.h && (unsigned)ix < (unsigned)p.w)
                    v[e] = from[channel / (FOLD * FOLD) * plane + iy * p.w + ix];
            }
            to[(index_t)pixel * source.pixel + chunk] = to_chunk(v);
        }
        return;
    }
    const int first_pixel = blockIdx.x * LANES, first_chunk = blockIdx.y * ACROSS;
    {
        const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
        const int pixel = first_pixel + lane, chunk = first_chunk + row;
        float v[EACH] = {};
        if (pixel < pixels && chunk < source.pixel) {
            const int image = pixel / area, place = pixel % area;
            const int group = chunk / source.chunks, first = chunk % source.chunks * EACH;
            const float* from = x + image * p.c * plane;
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (first + e < source.depth) v[e] = from[(group * source.depth + first + e) * plane + place];
        }
        tile[lane * ACROSS + (row ^ (lane & 7))] = to_chunk(v);
    }
    __syncthreads();
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    const int pixel = first_pixel + row, chunk = first_chunk + column;
    if (pixel < pixels && chunk < source.pixel)
        to[(index_t)pixel * source.pixel + chunk] = tile[row * ACROSS + (column ^ (row & 7))];
}
