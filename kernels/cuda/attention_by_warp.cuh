// How the rungs in which warps divide the keys read and write rows: four elements at once where all rows begin at 16 bytes
// (ALIGNED).
#pragma once

// Elements e to e + 3 of a row, zeros where there is no such row or element.
__device__ __forceinline__ float4 four(const float* row, bool there, int e, int elements) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (ALIGNED) {
        if (there && e < elements) v = *reinterpret_cast<const float4*>(row + e);
    } else if (there) {
        if (e < elements) v.x = row[e];
        if (e + 1 < elements) v.y = row[e + 1];
        if (e + 2 < elements) v.z = row[e + 2];
        if (e + 3 < elements) v.w = row[e + 3];
    }
    return v;
}

// Elements e to e + 3 of an answer, divided.
__device__ __forceinline__ void give(float* row, int e, float4 whole, float by, int elements) {
    const float4 v = make_float4(whole.x / by, whole.y / by, whole.z / by, whole.w / by);
    if (ALIGNED) {
        if (e < elements) *reinterpret_cast<float4*>(row + e) = v;
    } else {
        if (e < elements) row[e] = v.x;
        if (e + 1 < elements) row[e + 1] = v.y;
        if (e + 2 < elements) row[e + 2] = v.z;
        if (e + 3 < elements) row[e + 3] = v.w;
    }
}
