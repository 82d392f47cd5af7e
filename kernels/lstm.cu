// The recurrence of one LSTM layer (C3), in FP32: gates = projected input + R h; the input projections are computed
// before, by a 1x1 convolution.
//
// A block keeps the recurrent weights of one direction on the chip, partly in registers, partly in shared memory, and
// walks LSTM_WINDOWS windows through all frames. A thread owns one gate of one hidden unit for all of its windows, its
// neighbours in a group of 4 the unit's other gates: they exchange sums, and each updates the cell of one window.
#include "common/basic.cuh"

constexpr int HIDDEN = LSTM_HIDDEN, WINDOWS = LSTM_WINDOWS, THREADS = LSTM_THREADS;
#if __CUDA_ARCH__ >= 800
constexpr int ON_CHIP = HIDDEN;
#else
constexpr int ON_CHIP = LSTM_REGISTERS + LSTM_SHARED_75 / (4 * THREADS); // the rest comes from the L1 cache
#endif
static_assert(THREADS == 4 * HIDDEN && WINDOWS == 4, "4 gates, one window for each thread of a group");

// 1 / (1 + e^-x) with an error below 2e-7.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ inline float tanh_of(float x) { return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x)); }

// Element i of lane j of each group of 4 becomes element j of lane i.
__device__ inline void transpose(float (&v)[4], u32 lane) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const float got = __shfl_xor_sync(0xffffffff, lane & 1 ? v[i] : v[i + 1], 1);
        if (lane & 1) v[i] = got; else v[i + 1] = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float got = __shfl_xor_sync(0xffffffff, lane & 2 ? v[i] : v[i + 2], 2);
        if (lane & 2) v[i] = got; else v[i + 2] = got;
    }
}

extern "C" __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm(const __grid_constant__ LstmArgs p) {
    extern __shared__ float shared_weights[]; // [hidden unit from LSTM_REGISTERS on][thread]
    __shared__ float4 state[2][HIDDEN];       // h of the 4 windows
    const u32 thread = threadIdx.x, unit = thread / 4, lane = thread % 4, direction = blockIdx.y;
    const float* weights = p.weights + (u64)direction * HIDDEN * THREADS + thread;
    float own[LSTM_REGISTERS];
#pragma unroll
    for (int k = 0; k < LSTM_REGISTERS; k++) own[k] = weights[k * THREADS];
#pragma unroll 4
    for (int k = LSTM_REGISTERS; k < ON_CHIP; k++) shared_weights[(k - LSTM_REGISTERS) * THREADS + thread] = weights[k * THREADS];
    if (thread < HIDDEN) state[0][thread] = make_float4(0, 0, 0, 0);
    __syncthreads();

    const u32 total = p.windows * p.frames;
    const u32 first = blockIdx.x * WINDOWS, mine = first + lane;
    // Of windows that are not there the last one is computed again and not stored.
    u32 at[WINDOWS];
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) at[w] = min(first + w, p.windows - 1) * p.frames;
    const float* projected = p.projected + (u64)(direction * HIDDEN + unit) * total * 4 + lane;
    float* out = p.out + ((u64)(direction * (HIDDEN / 4) + unit / 4) * total + (u64)mine * p.frames) * 4 + unit % 4;

    float next[WINDOWS], cell = 0.0f;
    const u32 start = direction ? p.frames - 1 : 0;
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) next[w] = __ldg(projected + (u64)(at[w] + start) * 4);
#pragma unroll 1
    for (u32 step = 0; step < p.frames; step++) {
        const u32 frame = direction ? p.frames - 1 - step : step;
        float sum[WINDOWS];
#pragma unroll
        for (int w = 0; w < WINDOWS; w++) sum[w] = next[w];
        if (step + 1 < p.frames) {
            const u32 ahead = direction ? frame - 1 : frame + 1;
#pragma unroll
            for (int w = 0; w < WINDOWS; w++) next[w] = __ldg(projected + (u64)(at[w] + ahead) * 4);
        }
        const float4* h = state[step % 2];
        const auto add = [&](int k, float weight) {
            const float4 v = h[k];
            sum[0] = fmaf(weight, v.x, sum[0]), sum[1] = fmaf(weight, v.y, sum[1]);
            sum[2] = fmaf(weight, v.z, sum[2]), sum[3] = fmaf(weight, v.w, sum[3]);
        };
#pragma unroll
        for (int k = 0; k < LSTM_REGISTERS; k++) add(k, own[k]);
#pragma unroll 8
        for (int k = LSTM_REGISTERS; k < ON_CHIP; k++) add(k, shared_weights[(k - LSTM_REGISTERS) * THREADS + thread]);
#pragma unroll 8
        for (int k = ON_CHIP; k < HIDDEN; k++) add(k, __ldg(weights + k * THREADS));
        transpose(sum, lane);
        cell = sigmoid(sum[1]) * cell + sigmoid(sum[0]) * tanh_of(sum[2]);
        const float hidden = sigmoid(sum[3]) * tanh_of(cell);
        ((float*)&state[(step + 1) % 2][unit])[lane] = hidden;
        if (mine < p.windows) out[4 * frame] = hidden;
        __syncthreads();
    }
}
