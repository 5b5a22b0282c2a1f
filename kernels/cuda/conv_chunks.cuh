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

#define ACROSS 8  // chunks of a block that lays x out

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

// NCHW float32 to NHWC. A block 32 pixels × 8 chunks: lanes read neighbouring pixels, and write neighbouring
// chunks.
extern "C" __global__ void __launch_bounds__(256)
    conv_lay_out(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    __shared__ uint4 tile[LANES * ACROSS];
    let_next_begin();
    wait_for_previous();
    const Source source(p);
    const int pixels = p.n * source.h * source.w;
    const int first_pixel = blockIdx.x * LANES, first_chunk = blockIdx.y * ACROSS;
    {
        const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
        const int pixel = first_pixel + lane, chunk = first_chunk + row;
        float v[EACH] = {};
        if (pixel < pixels && chunk < source.pixel) {
            const int image = pixel / (source.h * source.w), place = pixel % (source.h * source.w);
            const int group = chunk / source.chunks, first = chunk % source.chunks * EACH;
            const index_t plane = (index_t)p.h * p.w;
            const float* from = x + (index_t)image * p.c * plane;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int channel = first + e;
                if (channel >= source.depth) break;
                if (FOLD > 1) {
                    const int iy = place / source.w * FOLD + channel / FOLD % FOLD - p.pad_top;
                    const int ix = place % source.w * FOLD + channel % FOLD - p.pad_left;
                    if ((unsigned)iy < (unsigned)p.h && (unsigned)ix < (unsigned)p.w)
                        v[e] = from[channel / (FOLD * FOLD) * plane + (index_t)iy * p.w + ix];
                } else {
                    v[e] = from[(group * source.depth + channel) * plane + place];
                }
            }
        }
        tile[lane * ACROSS + (row ^ (lane & 7))] = to_chunk(v);
    }
    __syncthreads();
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    const int pixel = first_pixel + row, chunk = first_chunk + column;
    if (pixel < pixels && chunk < source.pixel)
        reinterpret_cast<uint4*>(workspace)[(index_t)pixel * source.pixel + chunk] =
            tile[row * ACROSS + (column ^ (row & 7))];
}
