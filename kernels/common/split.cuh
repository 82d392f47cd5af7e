// Products of FP32 accuracy on the tensor cores of every card: each operand is the sum of two FP16, high and low, of which
// three products are summed in FP32 (four in the recurrence). What is lost is 2^-22 of an operand, or 2^-25 where that is
// more; weights are multiplied by SPLIT_SCALE before, so that their low parts are no subnormal numbers.
//
// An operand beyond FP16_MAX would become an infinity less an infinity. None is: segmenter.rs refuses weights, gains and
// shifts of SPLIT_LIMIT or more. Then scaled weights are below SPLIT_LIMIT * SPLIT_SCALE; what an instance normalisation
// leaves is at most gain * sqrt(frames) + shift, since no value of n deviates from their mean by more than sqrt(n) standard
// deviations; states of an LSTM are within (-1, 1), and so the first linear layer gives less than
// SPLIT_LIMIT * (inputs + 1).
#pragma once
#include "ptx.cuh"

constexpr float UNSCALE = 1.0f / SPLIT_SCALE;

// Two values as FP16 and what FP16 loses of them.
__device__ inline void split(float a, float b, u32& high, u32& low) {
    high = to_half2(a, b);
    low = to_half2(a - half_low(high), b - half_high(high));
}

__device__ inline float leaky(float v) { return v < 0.0f ? 0.01f * v : v; }

// Four weights of a fragment in one load: high for inputs 2t and 2t + 8, then low.
__device__ inline uint4 load_weights(const uint4* p) { return __ldg(p); }

// acc += a b over 16 inputs: MT x 16 rows of `a` from shared memory, NT x 8 columns of `b` in registers. `a` is the
// address of this lane's row and half of the high part, PITCH the bytes between rows, LOW the bytes to the low part.
template <int MT, int NT, int PITCH, int LOW>
__device__ inline void multiply(float (&acc)[MT][NT][4], u32 a, const uint4 (&b)[NT]) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
        u32 high[4], low[4];
        load_matrices(high, a + m * 16 * PITCH);
        load_matrices(low, a + m * 16 * PITCH + LOW);
#pragma unroll
        for (int n = 0; n < NT; n++) mma_f16(acc[m][n], low, b[n].x, b[n].y);
#pragma unroll
        for (int n = 0; n < NT; n++) mma_f16(acc[m][n], high, b[n].z, b[n].w);
#pragma unroll
        for (int n = 0; n < NT; n++) mma_f16(acc[m][n], high, b[n].x, b[n].y);
    }
}

// Offset of a lane's row and half in a tile of 16 rows for load_matrices.
template <int PITCH>
__device__ inline u32 lane_offset(u32 lane) { return lane % 16 * PITCH + lane / 16 * 16; }
