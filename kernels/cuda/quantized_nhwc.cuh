// Products of eight-bit numbers over chunks (quantized_chunks.cuh) by mma.sync: rows are the pixels of the whole batch,
// columns the channels of a group. A chunk of a row has a lane's share of two instructions, 32 steps of the sum each.
#pragma once
#include "common.cuh"

// What is computed in. (Columns of the product are the instruction's rows, as in mma.cuh.)
struct Kind {
    static constexpr int CHUNK = 16;
    static __device__ __forceinline__ void multiply(int (&sum)[4], uint4 first, uint4 second, uint4 row);
};

#include "mma.cuh"
#include "quantized_chunks.cuh"

#if W_TYPE == DTYPE_UINT8
#define W_KIND ".u8"
#else
#define W_KIND ".s8"
#endif
#if X_TYPE == DTYPE_UINT8
#define X_KIND ".u8"
#else
#define X_KIND ".s8"
#endif

__device__ __forceinline__ void mma_bytes(int (&sum)[4], uint4 columns, unsigned row0, unsigned row1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32" W_KIND X_KIND ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(columns.x), "r"(columns.y), "r"(columns.z), "r"(columns.w), "r"(row0), "r"(row1));
}

__device__ __forceinline__ void Kind::multiply(int (&sum)[4], uint4 first, uint4 second, uint4 row) {
    mma_bytes(sum, first, row.x, row.y);
    mma_bytes(sum, second, row.z, row.w);
}

#define SLAB (STAGES * CHUNKS * (TILE_ROWS + TILE_COLUMNS))  // chunks of shared memory
#define OUT_COLUMNS 8
#define PIECE 16                                   // rows of each warp that are laid out at once
#define PIECE_ROWS (TILE_ROWS / WARP_ROWS * PIECE)  // and of the block
#define PIECE_LEAD (TILE_COLUMNS + 4)
static_assert(16 * SLAB >= 4 * (PIECE_ROWS * PIECE_LEAD + TILE_ROWS) + TILE_COLUMNS * (int)sizeof(Column),
              "what is kept must fit");

// A block a tile of y, or of its part of the sum.
template <class P>
__device__ __forceinline__ void multiply_nhwc(const void* x, const void* weight, const void* x_zero,
                                              const void* weight_zero, const int* bias, const double* scale,
                                              const double* shift, void* y, void* workspace, const P& p) {
    __shared__ uint4 shared[SLAB];
    uint4(*weights)[TILE_COLUMNS * CHUNKS] = reinterpret_cast<uint4(*)[TILE_COLUMNS * CHUNKS]>(shared);
    uint4(*patches)[TILE_ROWS * CHUNKS] =
        reinterpret_cast<uint4(*)[TILE_ROWS * CHUNKS]>(shared + STAGES * CHUNKS * TILE_COLUMNS);
    let_next_begin();
    const Source source(p);
    const Work work(source, p, weight, x_zero, weight_zero);
    Patches patch(source, p, work);
    const int thread = threadIdx.x, warp = thread / LANES, lane = thread % LANES;
    const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;

    auto copy_weights = [&](int slab, int stage) {
        if (slab >= work.end) return;
        const uint4* packed = work.filters + (index_t)slab * work.wide * CHUNKS;
#pragma unroll
        for (int l = 0; l < COPIES; ++l) {
            const int e = thread + l * THREADS;
            if (TILE_COLUMNS * CHUNKS % THREADS != 0 && e >= TILE_COLUMNS * CHUNKS) break;
            copy_async_16(&weights[stage][e], packed + e);
        }
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_weights(work.begin + ahead, ahead);
    const Column mine = thread < TILE_COLUMNS ? work.column(p, thread, weight_zero, bias, scale, shift) : Column{};
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const uint4* from = reinterpret_cast<const uint4*>(READS ? x : workspace);
    // A group is closed even when nothing is left, so that their number tells which have arrived.
    auto copy_patches = [&](int slab, int stage) {
        if (slab < work.end) patch.copy(source, p, from, patches[stage], work.zero);
        close_group();
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_patches(work.begin + ahead, ahead);

    WarpTile<Kind, WARP_ROWS, WARP_COLUMNS, int> tile;
    int of_row[WARP_ROWS / MMA_ROWS] = {};
    int stage = 0, vacant = STAGES - 1;
    for (int slab = work.begin; slab < work.end; ++slab) {
        // Of each thread's copies this slab's have arrived; after the barrier everybody's, and the slab before has been
        // multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        copy_weights(slab + STAGES - 1, vacant);
        copy_patches(slab + STAGES - 1, vacant);
        tile.add(patches[stage], weights[stage], warp_row, warp_column);
        if (work.of_rows && warp_column == 0) {
            const uint4 ones = work.ones[slab * CHUNKS + lane % CHUNKS];
#pragma unroll
            for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i)
                of_row[i] = add_up(
                    patches[stage][place_in_slab(warp_row + i * MMA_ROWS + lane / CHUNKS, lane % CHUNKS)], ones, of_row[i]);
        }
        vacant = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    wait_for_all_but<0>();
    __syncthreads();

    // Shared memory again: sums that are laid out, what each column is worked out with, the sums of rows.
    int* laid_out = reinterpret_cast<int*>(shared);
    Column* columns = reinterpret_cast<Column*>(laid_out + PIECE_ROWS * PIECE_LEAD);
    int* row_sums = reinterpret_cast<int*>(columns + TILE_COLUMNS);
    if (thread < TILE_COLUMNS) {
        columns[thread] = mine;
        if (work.part > 0) columns[thread].less = 0;  // of a sum in parts the first takes it off
    }
    if (work.of_rows && warp_column == 0) {
#pragma unroll
        for (int i = 0; i < WARP_ROWS / MMA_ROWS; ++i) {
            int sum = of_row[i];
            sum += __shfl_xor_sync(ALL_LANES, sum, 1);
            sum += __shfl_xor_sync(ALL_LANES, sum, 2);
            if (lane % CHUNKS == 0) row_sums[warp_row + i * MMA_ROWS + lane / CHUNKS] = sum;
        }
    }
    __syncthreads();
#pragma unroll
    for (int piece = 0; piece < WARP_ROWS; piece += PIECE) {
        // Row r of what is laid out is row r % PIECE of this piece of its warp's.
        int* out = laid_out + (warp_row / WARP_ROWS * PIECE + lane % 4 * 2) * PIECE_LEAD + warp_column + lane / 4;
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / OUT_COLUMNS; ++j)
#pragma unroll
            for (int i = 0; i < PIECE / MMA_ROWS; ++i)
#pragma unroll
                for (int s = 0; s < 2; ++s)
                    out[(i * MMA_ROWS + s) * PIECE_LEAD + j * OUT_COLUMNS] =
                        tile.sum[j / 2][piece / MMA_ROWS + i][j % 2 * 2 + s];
        __syncthreads();
        auto row_of = [&](int row) { return row / PIECE * WARP_ROWS + piece + row % PIECE; };
        auto sums = [&](int row, int at) {
            int4 four = *reinterpret_cast<const int4*>(laid_out + row * PIECE_LEAD + at);
            if (work.of_rows) {
                const int more = row_sums[row_of(row)];
                four.x -= columns[at].own * more, four.y -= columns[at + 1].own * more;
                four.z -= columns[at + 2].own * more, four.w -= columns[at + 3].own * more;
            }
            return four;
        };
        auto pixel_of = [&](int row) { return work.first_pixel + row_of(row); };
#if PARTS > 1
        // Partial sums lie by pixels, their channels filled up to whole chunks.
        const int every = chunks_of(p.m) * EACH;
        int* partial = reinterpret_cast<int*>(reinterpret_cast<uint4*>(workspace) + source.size(p.n)) +
                       (index_t)work.part * work.pixels * every + work.g * work.outputs + work.first_output;
#pragma unroll 1
        for (int e = thread; e < PIECE_ROWS * TILE_COLUMNS; e += THREADS) {
            const int row = e / TILE_COLUMNS, at = e % TILE_COLUMNS, pixel = pixel_of(row);
            if (pixel >= work.pixels || work.first_output + at >= work.outputs) continue;
            int sum = laid_out[row * PIECE_LEAD + at] + columns[at].less;
            if (work.of_rows) sum -= columns[at].own * row_sums[row_of(row)];
            partial[(index_t)pixel * every + at] = sum;
        }
#else
        write_answers<PIECE_ROWS>(work, p, columns, bias, scale, shift, y, sums, pixel_of);
#endif
        __syncthreads();  // all is read before the next piece is laid out
    }
}

// Adds the parts.
template <class P>
__device__ __forceinline__ void add_parts(const int* bias, const double* scale, const double* shift, void* y,
                                          void* workspace, const P& p) {
    let_next_begin();
    wait_for_previous();
    workspace = written(workspace);
    const int area = p.out_h * p.out_w, every = chunks_of(p.m) * EACH;
    const index_t total = (index_t)p.n * area * every;
    const int* parts = reinterpret_cast<const int*>(reinterpret_cast<const uint4*>(workspace) + Source(p).size(p.n));
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int channel = i % every, pixel = i / every;
        const index_t at = place_of(p, pixel, area, channel);
        if (channel >= p.m) {
            if (WRITES) reinterpret_cast<unsigned char*>(y)[at] = 0;
            continue;
        }
        int sum = 0;
#pragma unroll 8
        for (int part = 0; part < PARTS; ++part) sum += parts[part * total + i];
        finish(p, y, at, sum, channel, bias, scale, shift);
    }
}
