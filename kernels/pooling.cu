// Weighted mean and unbiased standard deviation over the trunk frames of a window, for the masks of its 3 local speakers
// at once (C6; src/backend/cpu/trunk.rs has the same formulas).
//
// A warp takes one row of one unit and keeps it in registers: lane l holds frames l, l + 32, l + 64, l + 96. Frames outside
// a mask are left out, not multiplied by 0, so that they may hold anything. The order of every sum is fixed.
#include "common/basic.cuh"

constexpr int CHANNELS = POOL_CHANNELS;
constexpr int FRAMES_LANE = (POOL_FRAMES + WARP - 1) / WARP;
static_assert(FRAMES_LANE == sizeof(PoolJob::mask[0]) / sizeof(u32), "word i of a mask holds the lanes' frame i");

// Every lane gets the same bits: each step adds the same two numbers in both lanes of a pair.
__device__ inline float warp_sum(float v) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
    return v;
}

template <int UNIT>
__device__ inline void pool(const PoolArgs& p) {
    const float epsilon = 1e-8f;
    const u32 lane = threadIdx.x % WARP;
    const u32 line = blockIdx.y * (POOL_THREADS / WARP) + threadIdx.x / WARP; // unit * height + row
    if (line >= CHANNELS / UNIT * p.height) return;
    const PoolJob& job = p.jobs[blockIdx.x];

    const uint4* part0 = (const uint4*)p.maps + job.unit0 + (u64)line * job.pitch0;
    const uint4* part1 = (const uint4*)p.maps + job.unit1 + (u64)line * job.pitch1;
    const u32 count0 = job.count0;
    float v[FRAMES_LANE][UNIT];
#pragma unroll
    for (int i = 0; i < FRAMES_LANE; i++) {
        const u32 t = lane + i * WARP;
        uint4 unit = make_uint4(0, 0, 0, 0);
        if (t < POOL_FRAMES) unit = __ldg(t < count0 ? part0 + t : part1 + (t - count0));
        unpack(v[i], unit);
    }

    const u32 unit = line / p.height, row = line % p.height;
    float* out = p.statistics + (u64)blockIdx.x * POOL_MASKS * 2 * CHANNELS * p.height;
#pragma unroll 1
    for (int mask = 0; mask < POOL_MASKS; mask++) {
        bool chosen[FRAMES_LANE];
        u32 frames = 0;
#pragma unroll
        for (int i = 0; i < FRAMES_LANE; i++) {
            constexpr u32 LAST = 0xffffffffu >> (FRAMES_LANE * WARP - POOL_FRAMES);
            const u32 word = job.mask[mask][i] & (i == FRAMES_LANE - 1 ? LAST : 0xffffffffu);
            chosen[i] = word >> lane & 1;
            frames += __popc(word);
        }
        // With weights of 0 and 1 both the sum of the weights and that of their squares is the number of frames.
        const float weight = (float)frames + epsilon;
        const float freedom = weight - (float)frames / weight + epsilon;
        float* mean = out + (u64)mask * 2 * CHANNELS * p.height;
        float* deviation = mean + CHANNELS * p.height;
        // Step by step for all channels, so that their chains of shuffles overlap.
        float sum[UNIT] = {}, squares[UNIT] = {};
#pragma unroll
        for (int c = 0; c < UNIT; c++)
#pragma unroll
            for (int i = 0; i < FRAMES_LANE; i++) sum[c] += chosen[i] ? v[i][c] : 0.0f;
#pragma unroll
        for (int c = 0; c < UNIT; c++) sum[c] = warp_sum(sum[c]) / weight;
#pragma unroll
        for (int c = 0; c < UNIT; c++)
#pragma unroll
            for (int i = 0; i < FRAMES_LANE; i++)
                squares[c] += chosen[i] ? (v[i][c] - sum[c]) * (v[i][c] - sum[c]) : 0.0f;
#pragma unroll
        for (int c = 0; c < UNIT; c++) squares[c] = warp_sum(squares[c]);
        if (lane > 0) continue;
#pragma unroll
        for (int c = 0; c < UNIT; c++) {
            const u32 at = (unit * UNIT + c) * p.height + row;
            mean[at] = sum[c];
            deviation[at] = sqrtf(squares[c] / freedom);
        }
    }
}

extern "C" __global__ void __launch_bounds__(POOL_THREADS) pool_f32(const __grid_constant__ PoolArgs p) { pool<4>(p); }
extern "C" __global__ void __launch_bounds__(POOL_THREADS) pool_f16(const __grid_constant__ PoolArgs p) { pool<8>(p); }
