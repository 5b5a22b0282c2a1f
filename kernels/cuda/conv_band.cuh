// The convolution of an image with few channels as a matrix product on tensor cores (mma.cuh), straight from NCHW
// float32. Included behind the rung's struct Kind. A block's pixels follow each other in one image; the band of the
// image that their windows cover is read once, and lies in shared memory in the element type of the product. Patches are
// never written out: a lane's share of an instruction is four neighbouring steps of its sum, a piece of a row of the
// window, and these are neighbours in the band, too. So the sum goes over the pieces of the window's rows, a row filled
// up to whole pieces, channel by channel: the order in which kernels/packing.py laid the weights out. What a piece holds
// beyond the window's last column is multiplied by zeros.
//
// With UNIT pixels in one read: as many as the stride keeps on a boundary of their own. Rows of the band are as far from
// each other as lets the lanes that read side by side do so from different banks (kernels/launch/band.py).
#pragma once
#include "common.cuh"
#include "conv_out.cuh"
#include "mma.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"

#define PIECE_STEPS 4
#define PIECES_AT_ONCE (Kind::CHUNK / PIECE_STEPS)  // of a lane, in a slab
#define ROW_PIECES ((KW + PIECE_STEPS - 1) / PIECE_STEPS)
#define PIECES (C * KH * ROW_PIECES)
#define SLABS ((PIECES * PIECE_STEPS + DEPTH - 1) / DEPTH)
#define ALL_PIECES (SLABS * DEPTH / PIECE_STEPS)
#define BAND (C * BAND_ROWS * LEAD)          // values of the band
#define WORD ((int)(4 / sizeof(Kind::Cell)))  // values in four bytes
#define WARPS (THREADS / LANES)

extern __shared__ float4 dynamic[];

// Four values that begin UNIT values apart from a boundary, as they lie.
template <int EACH_CHUNK>
struct Piece;

template <>
struct Piece<8> {  // 16 bits
    static __device__ __forceinline__ void read(unsigned* words, const half_bits* from) {
        if (UNIT == 4) {
            const uint2 v = *reinterpret_cast<const uint2*>(from);
            words[0] = v.x, words[1] = v.y;
        } else if (UNIT == 2) {
            words[0] = reinterpret_cast<const unsigned*>(from)[0];
            words[1] = reinterpret_cast<const unsigned*>(from)[1];
        } else {
            words[0] = from[0] | (unsigned)from[1] << 16;
            words[1] = from[2] | (unsigned)from[3] << 16;
        }
    }
};

template <>
struct Piece<4> {  // float32
    static __device__ __forceinline__ void read(unsigned* words, const unsigned* from) {
        if (UNIT == 4) {
            const uint4 v = *reinterpret_cast<const uint4*>(from);
            words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
        } else if (UNIT == 2) {
            const uint2 v = reinterpret_cast<const uint2*>(from)[0], w = reinterpret_cast<const uint2*>(from)[1];
            words[0] = v.x, words[1] = v.y, words[2] = w.x, words[3] = w.y;
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) words[i] = from[i];
        }
    }
};

// A block a tile of y: TILE_ROWS pixels of one image, the last of an image perhaps fewer.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    uint4* shared = reinterpret_cast<uint4*>(dynamic);
    uint4(*weights)[TILE_COLUMNS * CHUNKS] = reinterpret_cast<uint4(*)[TILE_COLUMNS * CHUNKS]>(shared);
    Kind::Cell* band = reinterpret_cast<Kind::Cell*>(shared + STAGES * TILE_COLUMNS * CHUNKS);
    int* places = reinterpret_cast<int*>(band + BAND);  // of each piece in the band, from a window's corner

    let_next_begin();
    const int area = p.out_h * p.out_w, tiles = (area + TILE_ROWS - 1) / TILE_ROWS;
    const int across = (p.m + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int first_output = blockIdx.x % across * TILE_COLUMNS;
    const int first = blockIdx.x / across % tiles * TILE_ROWS, last = min(first + TILE_ROWS, area) - 1;
    const int image = blockIdx.x / across / tiles, first_row = first / p.out_w;
    const int thread = threadIdx.x, warp = thread / LANES, lane = thread % LANES;
    const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    // Weights come packed: by slab and channel (a whole number of tiles of them).
    const int wide = across * TILE_COLUMNS;
    const uint4* filters = reinterpret_cast<const uint4*>(weight) + (index_t)first_output * CHUNKS;

    // A group is closed even when nothing is left, so that their number tells which have arrived.
    auto copy_weights = [&](int slab, int stage) {
        if (slab < SLABS) {
            const uint4* packed = filters + (index_t)slab * wide * CHUNKS;
#pragma unroll
            for (int l = 0; l < COPIES; ++l) {
                const int e = thread + l * THREADS;
                if (TILE_COLUMNS * CHUNKS % THREADS != 0 && e >= TILE_COLUMNS * CHUNKS) break;
                copy_async_16(&weights[stage][e], packed + e);
            }
        }
        close_group();
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_weights(ahead, ahead);
    for (int e = thread; e < ALL_PIECES; e += THREADS) {
        // Behind the last piece the first once more: their weights are zeros.
        const int row = e < PIECES ? e / ROW_PIECES : 0, piece = e < PIECES ? e % ROW_PIECES : 0;
        places[e] = (row / KH * BAND_ROWS + row % KH * p.dilation_h) * LEAD + piece * PIECE_STEPS;
    }
    wait_for_previous();
    x = written(x);

    // The rows of the image under this block's windows, zeros where there is no image. A warp a row.
    const int rows = (last / p.out_w - first_row) * p.stride_h + (KH - 1) * p.dilation_h + 1;
    const float* from = x + (index_t)image * C * p.h * p.w;
    const int top = first_row * p.stride_h - p.pad_top;
    for (int e = warp; e < C * rows; e += WARPS) {
        const int channel = e / rows, row = e % rows, iy = top + row;
        const float* line = from + ((index_t)channel * p.h + iy) * p.w - p.pad_left;
        unsigned* to = reinterpret_cast<unsigned*>(band + (channel * BAND_ROWS + row) * LEAD);
        const bool there = (unsigned)iy < (unsigned)p.h;
#pragma unroll 4
        for (int i = lane; i < LEAD / WORD; i += LANES) {
            float v[2] = {};
#pragma unroll
            for (int s = 0; s < WORD; ++s)
                if (there && (unsigned)(i * WORD + s - p.pad_left) < (unsigned)p.w) v[s] = line[i * WORD + s];
            to[i] = WORD == 2 ? to_halves(v[0], v[1]) : to_tf32(v[0]);
        }
    }

    // Where the windows of this lane's pixels begin in the band; beyond the last pixel the last once more.
    int corner[WARP_ROWS / MMA_ROWS];
#pragma unroll
    for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i) {
        const int pixel = min(first + warp_row + i * MMA_ROWS + lane / CHUNKS, last);
        corner[i] = (pixel / p.out_w - first_row) * p.stride_h * LEAD + pixel % p.out_w * p.stride_w;
    }
    WarpTile<Kind, WARP_ROWS, WARP_COLUMNS> tile;
    int stage = 0, vacant = STAGES - 1;
    for (int slab = 0; slab < SLABS; ++slab) {
        // Of each thread's copies this slab's have arrived; after the barrier everybody's, and the slab before has been
        // multiplied by all, so that its place is free. The first time the band, too, is whole.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        copy_weights(slab + STAGES - 1, vacant);
        uint4 row[WARP_ROWS / MMA_ROWS];
        int place[PIECES_AT_ONCE];
#pragma unroll
        for (int i = 0; i < PIECES_AT_ONCE; ++i)
            place[i] = places[(slab * PIECES_AT_ONCE + i) * CHUNKS + lane % CHUNKS];
#pragma unroll
        for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i) {
            unsigned words[4];
#pragma unroll
            for (int k = 0; k < PIECES_AT_ONCE; ++k)
                Piece<Kind::CHUNK>::read(words + k * (4 / PIECES_AT_ONCE), band + corner[i] + place[k]);
            row[i] = make_uint4(words[0], words[1], words[2], words[3]);
        }
        tile.add(row, weights[stage], warp_column);
        vacant = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    wait_for_all_but<0>();
    __syncthreads();
    write_tile(tile, shared, image * area + first + warp_row, (image + 1) * area, first_output + warp_column, p.m, 0, 0,
               bias, y, nullptr, p);
}
