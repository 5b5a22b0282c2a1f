// Operands of mma.sync out of shared memory: ldmatrix (compute capability 7.5).
#pragma once

// Four matrices of eight rows of 16 bytes: lane l says where row l % 8 of matrix l / 8 lies, so many chunks
// behind an address that all have in common, and is given word l % 4 of row l / 4 of each. Of rows that hold the
// steps of a product's sum these are what mma.sync asks a lane for. (Places are added up as numbers, so that what
// is known of them when a kernel is compiled stands in the instruction.)
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const uint4* from, int chunks) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(from) + 16 * (unsigned)chunks;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}
