// Products of eight-bit numbers over chunks of EACH = 16 channels of a pixel (nhwc.cuh): what the rungs by mma.sync and by
// warpgroups share. A matrix product is one of images of a pixel each. P, the parameters, have the names of QConvParams.
//
// The instructions take signed and unsigned bytes as they are, X_TYPE and W_TYPE: so what lies outside an image, x's zero
// point, is written there as it is, and zero points come off behind the sums (quantized_out.cuh). Weights come packed
// (packing.byte_slabs): slabs, behind them the sums of each channel's weights, and behind these a row of ones, by which
// rows of x are added up where a zero point of the weights asks for that.
//
// Included behind CHUNKS, THREADS and place_in_slab (mma.cuh or wgmma.cuh), and LOADS, the chunks of a slab's rows that a
// thread copies.
#pragma once
#include "conv_source.cuh"
#include "overlap.cuh"
#include "quantized_out.cuh"
#include "warp.cuh"

#define ROWS_AT_ONCE (THREADS / CHUNKS)  // whose chunks the threads of a block copy together
static_assert(TILE_ROWS % ROWS_AT_ONCE == 0 && LOADS * ROWS_AT_ONCE == TILE_ROWS, "every thread copies as many chunks");
static_assert(THREADS >= TILE_COLUMNS, "a thread a column works out what that needs");

__device__ __forceinline__ uint4 chunk_of_byte(int byte) {
    const unsigned four = (byte & 255) * 0x01010101u;
    return make_uint4(four, four, four, four);
}

// Adds up those numbers of a chunk of x where `ones` has a one.
__device__ __forceinline__ int add_up(uint4 chunk, uint4 ones, int sum) {
    const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w}, by[4] = {ones.x, ones.y, ones.z, ones.w};
#pragma unroll
    for (int q = 0; q < 4; ++q)
#if X_TYPE == DTYPE_UINT8
        sum = (int)__dp4a(words[q], by[q], (unsigned)sum);
#else
        sum = __dp4a((int)words[q], (int)by[q], sum);
#endif
    return sum;
}

// A block's part of the product, and where its factors lie.
struct Work {
    int outputs, area, pixels, g, part, slabs, begin, end, first_output, first_pixel, wide, terms, zero;
    const uint4 *filters, *ones;
    const int* sums;  // of the weights of the tile's columns
    bool of_rows;     // whether sums of rows are wanted
    template <class P>
    __device__ __forceinline__ Work(const Source& source, const P& p, const void* weight, const void* x_zero,
                                    const void* weight_zero) {
        outputs = p.m / p.group, area = p.out_h * p.out_w, pixels = p.n * area;
        g = blockIdx.z / PARTS, part = blockIdx.z % PARTS;
        // This block's part of the slabs, their number the same for all parts or one less.
        slabs = (source.kh * source.kw * source.chunks + CHUNKS - 1) / CHUNKS;
        begin = (int)((index_t)slabs * part / PARTS), end = (int)((index_t)slabs * (part + 1) / PARTS);
        const int across = (outputs + TILE_COLUMNS - 1) / TILE_COLUMNS;
        first_output = blockIdx.x % across * TILE_COLUMNS, first_pixel = blockIdx.x / across * TILE_ROWS;
        wide = across * TILE_COLUMNS;
        const uint4* packed = reinterpret_cast<const uint4*>(weight);
        filters = packed + ((index_t)g * slabs * wide + first_output) * CHUNKS;
        const int* all = reinterpret_cast<const int*>(packed + (index_t)p.group * slabs * wide * CHUNKS);
        sums = all + g * wide + first_output;
        ones = reinterpret_cast<const uint4*>(all + p.group * wide);
        terms = p.c / p.group * p.kh * p.kw;
        zero = whole(x_zero, 0, X_TYPE);
        of_rows = p.weight_zeros > 1 || whole(weight_zero, 0, W_TYPE) != 0;
    }
    // What column `at` of the tile is worked out with.
    template <class P>
    __device__ __forceinline__ Column column(const P& p, int at, const void* weight_zero, const int* bias,
                                             const double* scale, const double* shift) const {
        Column c = {};
        if (first_output + at < outputs) {
            const int channel = g * outputs + first_output + at;
            const int own = whole(weight_zero, p.weight_zeros > 1 ? channel : 0, W_TYPE);
            c = column_of(p, channel, sums[at], terms, zero, own, bias, scale, shift);
        }
        return c;
    }
};

// Copies a slab's chunks of windows after the other's: the same chunk of every slab is a thread's, for LOADS pixels.
struct Patches {
    int mine, first_row, chunk, column, row, corner[LOADS], top[LOADS], left[LOADS];
    template <class P>
    __device__ __forceinline__ Patches(const Source& source, const P& p, const Work& work) {
        mine = threadIdx.x % CHUNKS, first_row = threadIdx.x / CHUNKS;
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int pixel = work.first_pixel + first_row + l * ROWS_AT_ONCE;
            const int image = pixel / work.area, place = pixel % work.area;
            top[l] = place / p.out_w * source.stride_h - source.top;
            left[l] = place % p.out_w * source.stride_w - source.left;
            corner[l] = pixel < work.pixels ? ((image * source.h + top[l]) * source.w + left[l]) * source.pixel +
                                                  work.g * source.chunks
                                            : -0x7fffffff;
        }
        const int tap = work.begin * CHUNKS + mine;
        chunk = tap % source.chunks;
        column = tap / source.chunks % source.kw;
        row = tap / source.chunks / source.kw;
    }
    // The next slab. What lies outside is x's zero point.
    template <class P>
    __device__ __forceinline__ void copy(const Source& source, const P& p, const uint4* from, uint4* to, int zero) {
        const int down = row * p.dilation_h, right = column * p.dilation_w;
        const int step = (down * source.w + right) * source.pixel + chunk;
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            // As an unsigned number what lies above or left of the image is beyond its other end.
            bool inside = row < source.kh && corner[l] != -0x7fffffff;
            if (PADDED)
                inside = inside && (unsigned)(top[l] + down) < (unsigned)source.h &&
                         (unsigned)(left[l] + right) < (unsigned)source.w;
            uint4* place = &to[place_in_slab(first_row + l * ROWS_AT_ONCE, mine)];
            if (inside) copy_async_16(place, from + corner[l] + step);
            else *place = chunk_of_byte(zero);
        }
        chunk += CHUNKS;
        while (chunk >= source.chunks) {
            chunk -= source.chunks;
            if (++column == source.kw) {
                column = 0;
                ++row;
            }
        }
    }
};

// Where an answer lies in y: behind its pixel, or as NCHW.
template <class P>
__device__ __forceinline__ index_t place_of(const P& p, int pixel, int area, int channel) {
    if (WRITES) return (index_t)pixel * (chunks_of(p.m) * EACH) + channel;
    return ((index_t)(pixel / area) * p.m + channel) * area + pixel % area;
}

// Writes the answers of ROWS of the tile's rows, four neighbours at a time out of sums in shared memory: of(row, at) are
// those of columns at to at + 3, pixel_of(row) is a row's pixel. Neighbouring threads have neighbouring columns, and each
// the same ones of every row; where y is NCHW, neighbouring rows.
template <int ROWS, class P, class Of, class PixelOf>
__device__ __forceinline__ void write_answers(const Work& work, const P& p, const Column* columns, const int* bias,
                                              const double* scale, const double* shift, void* y, Of of,
                                              PixelOf pixel_of) {
    constexpr int FOURS = TILE_COLUMNS / 4, AT_ONCE = THREADS / FOURS;
    const int begins = work.g * work.outputs;
    // The last group's channels are filled up with zeros; those of others are a whole number of chunks.
    const int filled = (work.g == p.group - 1 ? chunks_of(p.m) * EACH : begins + work.outputs) - begins;
    auto write = [&](int row, int at, const Column (&c)[4]) {
        const int pixel = pixel_of(row), output = work.first_output + at;
        if (pixel >= work.pixels || output >= filled) return;
        const int4 sums = of(row, at);
        const int four[4] = {sums.x, sums.y, sums.z, sums.w};
        Answer v[4];
        answer(p, four, c, begins + output, work.outputs - output, bias, scale, shift, v);
        const index_t place = place_of(p, pixel, work.area, begins + output);
        if (WRITES) {
            *reinterpret_cast<unsigned*>(reinterpret_cast<unsigned char*>(y) + place) =
                (unsigned)(v[0] & 255) | (v[1] & 255) << 8 | (v[2] & 255) << 16 | (unsigned)(v[3] & 255) << 24;
        } else {
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (output + q < work.outputs) reinterpret_cast<Answer*>(y)[place + (index_t)q * work.area] = v[q];
        }
    };
    if (WRITES) {
        const int at = 4 * (threadIdx.x % FOURS);
        const Column mine[4] = {columns[at], columns[at + 1], columns[at + 2], columns[at + 3]};
        if (threadIdx.x >= AT_ONCE * FOURS) return;
#pragma unroll 1
        for (int row = threadIdx.x / FOURS; row < ROWS; row += AT_ONCE) write(row, at, mine);
    } else {
#pragma unroll 1
        for (int e = threadIdx.x; e < ROWS * FOURS; e += THREADS) {
            const int at = 4 * (e / ROWS);
            const Column its[4] = {columns[at], columns[at + 1], columns[at + 2], columns[at + 3]};
            write(e % ROWS, at, its);
        }
    }
}

// x as NCHW bytes laid out in chunks in the scratch memory. With FOLD a thread a chunk, and another; else a block 32 pixels × 8 chunks:
// lanes read neighbouring pixels, and write neighbouring chunks.
template <class P>
__device__ __forceinline__ void lay_out_bytes(const void* x, const void* x_zero, void* workspace, const P& p) {
    constexpr int ACROSS = 8;
    __shared__ uint4 tile[FOLD > 1 ? 1 : LANES * ACROSS];
    let_next_begin();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const Source source(p);
    const int area = source.h * source.w, pixels = p.n * area, own = source.pixel;
    const index_t plane = (index_t)p.h * p.w;
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(x);
    uint4* to = reinterpret_cast<uint4*>(workspace);
    if (FOLD > 1) {
        const unsigned outside = whole(x_zero, 0, X_TYPE) & 255;
        const index_t end = p.n * p.c * plane;
        for (index_t i = first_element(); i < (index_t)pixels * own; i += grid_stride()) {
            const int pixel = i / own, chunk = i % own, image = pixel / area, place = pixel % area;
            const int top = place / source.w * FOLD - p.pad_top, left = place % source.w * FOLD - p.pad_left;
            unsigned v[4] = {};
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const int channel = chunk * EACH + 4 * q;
                const int iy = top + channel / FOLD % FOLD;
                const index_t at = (image * p.c + channel / (FOLD * FOLD)) * plane + (index_t)iy * p.w + left;
                // Four neighbours of a row, out of the two words that they lie in.
                if (FOLD == 4 && channel < source.depth && (unsigned)iy < (unsigned)p.h && left >= 0 &&
                    left + 4 <= p.w && at / 4 * 4 + 8 <= end) {
                    const unsigned* words = reinterpret_cast<const unsigned*>(bytes) + at / 4;
                    v[q] = (unsigned)(((unsigned long long)words[1] << 32 | words[0]) >> at % 4 * 8);
                    continue;
                }
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int one = channel + e, y = top + one / FOLD % FOLD, x_at = left + one % FOLD;
                    unsigned byte = outside;
                    if (one < source.depth && (unsigned)y < (unsigned)p.h && (unsigned)x_at < (unsigned)p.w)
                        byte = bytes[(image * p.c + one / (FOLD * FOLD)) * plane + y * p.w + x_at];
                    v[q] |= byte << e * 8;
                }
            }
            to[i] = make_uint4(v[0], v[1], v[2], v[3]);
        }
        return;
    }
    const int first_pixel = blockIdx.x * LANES, first_chunk = blockIdx.y * ACROSS;
    {
        const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
        const int pixel = first_pixel + lane, chunk = first_chunk + row;
        const int image = pixel < pixels ? pixel / area : 0;
        unsigned v[4] = {};
        if (pixel < pixels && chunk < own) {
            const int place = pixel % area;
            const int group = chunk / source.chunks, first = chunk % source.chunks * EACH;
            const unsigned char* from = bytes + image * p.c * plane;
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (first + e < source.depth)
                    v[e / 4] |= (unsigned)from[(group * source.depth + first + e) * plane + place] << e % 4 * 8;
        }
        tile[lane * ACROSS + (row ^ (lane & 7))] = make_uint4(v[0], v[1], v[2], v[3]);
    }
    __syncthreads();
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    const int pixel = first_pixel + row, chunk = first_chunk + column;
    if (pixel < pixels && chunk < own)
        to[(index_t)pixel * own + chunk] = tile[row * ACROSS + (column ^ (row & 7))];
}
