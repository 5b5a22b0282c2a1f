// Tiles of 32 × 32 elements, turned in shared memory by 32 × 8 threads. PAD: elements by which a row of it is longer.
#define TILE 32
#define ROWS 8

extern "C" __global__ void matrix_transpose(const float* __restrict__ x, float* __restrict__ y,
                                            const MatrixTransposeParams p) {
    __shared__ float tile[TILE][TILE + PAD];
    const int first_column = blockIdx.x * TILE;
    for (int first_row = blockIdx.y * TILE; first_row < p.m; first_row += gridDim.y * TILE) {
        for (int r = threadIdx.y; r < TILE; r += ROWS) {
            const int row = first_row + r, column = first_column + threadIdx.x;
            if (row < p.m && column < p.n) tile[r][threadIdx.x] = x[(long long)row * p.n + column];
        }
        __syncthreads();  // the tile is whole before anybody reads its columns
        for (int r = threadIdx.y; r < TILE; r += ROWS) {
            const int row = first_row + threadIdx.x, column = first_column + r;
            if (row < p.m && column < p.n) y[(long long)column * p.m + row] = tile[threadIdx.x][r];
        }
        __syncthreads();  // all have read it before the next tile is written over it
    }
}
