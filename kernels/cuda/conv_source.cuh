// x of a convolution as a product over chunks of EACH channels sees it (conv_chunks.cuh): P, the parameters of one, have
// the names of ConvParams. With AS_READ its chunks are those that x lies in.
#pragma once
#include "nhwc.cuh"

// x as the product sees it.
struct Source {
    int depth, chunks;  // channels of a group, and chunks of them
    int pixel;          // chunks of a pixel, as often as a number has operands
    int h, w, kh, kw, stride_h, stride_w, top, left;
    template <class P>
    __device__ __forceinline__ Source(const P& p) {
        const bool folded = FOLD > 1;
        depth = folded ? p.c * FOLD * FOLD : p.c / p.group;
        chunks = chunks_of(depth);
        pixel = OPERANDS * p.group * chunks;
        kh = folded ? (p.kh + FOLD - 1) / FOLD : p.kh;
        kw = folded ? (p.kw + FOLD - 1) / FOLD : p.kw;
        h = folded ? p.out_h + kh - 1 : p.h;
        w = folded ? p.out_w + kw - 1 : p.w;
        stride_h = folded ? 1 : p.stride_h;
        stride_w = folded ? 1 : p.stride_w;
        top = folded ? 0 : p.pad_top;
        left = folded ? 0 : p.pad_left;
    }
    // Chunks of the whole batch where it is laid out in scratch memory.
    __device__ __forceinline__ index_t size(int images) const {
        return AS_READ ? 0 : (index_t)images * h * w * pixel;
    }
};
