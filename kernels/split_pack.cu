// Weights of the segmentation network into the fragments of mma.sync, split into two FP16. Once per model.
#include "common/split.cuh"

// One thread per lane of a fragment of 16 inputs x 8 columns.
extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_split(const __grid_constant__ SplitPackArgs p) {
    const u32 i = blockIdx.x * PACK_THREADS + threadIdx.x;
    const u32 lane = i % WARP, tile = i / WARP % (p.count / 8), step = i / WARP / (p.count / 8);
    if (step >= p.taps * p.width / 16) return;
    const u32 column = tile * 8 + lane / 4;
    const u32 row = p.gates ? column % 4 * SEG_HIDDEN + column / 4 : column;
    auto weight = [&](u32 k) {
        const u32 tap = k / p.width, channel = k % p.width;
        return row < p.rows && channel < p.channels ? p.w[(row * p.channels + channel) * p.taps + tap] * SPLIT_SCALE : 0.0f;
    };
    const u32 k = step * 16 + lane % 4 * 2;
    uint4 v;
    split(weight(k), weight(k + 1), v.x, v.z);
    split(weight(k + 8), weight(k + 9), v.y, v.w);
    ((uint4*)p.packed)[(step * (p.columns / 8) + p.first / 8 + tile) * WARP + lane] = v;
    if (step == 0 && lane % 4 == 0) p.packed_bias[p.first + column] = row < p.rows ? p.bias[row] : 0.0f;
}

// [part][warp][tile][step][lane]: tiles 0 and 1 hold gates i, f and g, o of a warp's first 8 units, tiles 2 and 3 of its
// last 8, so that the four sums of a unit come to one lane.
extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_recurrent(const __grid_constant__ RecurrentPackArgs p) {
    const u32 i = blockIdx.x * PACK_THREADS + threadIdx.x;
    if (i >= 8 * 4 * 8 * WARP) return;
    const u32 lane = i % WARP, step = i / WARP % 8, tile = i / WARP / 8 % 4, warp = i / WARP / 32;
    const u32 unit = warp * 16 + tile / 2 * 8 + lane / 4;
    const float* row = p.w + (tile % 2 * 2 * SEG_HIDDEN + unit) * SEG_HIDDEN + step * 16 + lane % 4 * 2;
    const float* next = row + SEG_HIDDEN * SEG_HIDDEN; // the other gate of the tile
    uint4 high, low;
    split(row[0] * SPLIT_SCALE, row[1] * SPLIT_SCALE, high.x, low.x);
    split(next[0] * SPLIT_SCALE, next[1] * SPLIT_SCALE, high.y, low.y);
    split(row[8] * SPLIT_SCALE, row[9] * SPLIT_SCALE, high.z, low.z);
    split(next[8] * SPLIT_SCALE, next[9] * SPLIT_SCALE, high.w, low.w);
    ((uint4*)p.packed)[i] = high;
    ((uint4*)p.packed)[8 * 4 * 8 * WARP + i] = low;
}
