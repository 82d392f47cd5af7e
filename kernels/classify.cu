// The end of segmentation-3.0: two linear layers with leaky rectifiers, the classifier, log-softmax and its first maximum.
#include "common/split.cuh"

constexpr int ROWS = CLASSIFY_ROWS, UNITS = SEG_HIDDEN;
constexpr int PITCH = UNITS * 2 + 16, LOW = ROWS * PITCH; // bytes; an odd number of 16: 8 rows are in different banks
constexpr int MT = 2, NT = 4, PAD = UNITS + 1;
static_assert(CLASSIFY_THREADS == 256 && ROWS == 2 * MT * 16 && UNITS == 4 * NT * 8, "tiles.h");
static_assert(ROWS * PAD * 4 <= 2 * LOW, "results fit where the inputs were");

// acc += inputs of the tile x weights of 128 inputs from k16 step `first`.
__device__ inline void layer(float (&acc)[MT][NT][4], u32 base, const void* weights, u32 first) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint4* w = (const uint4*)weights + (first * (UNITS / 8) + warp / 2 * NT) * WARP + lane;
    uint4 next[NT];
#pragma unroll
    for (int n = 0; n < NT; n++) next[n] = load_weights(w + n * WARP);
#pragma unroll 2
    for (int k = 0; k < UNITS / 16; k++) {
        uint4 b[NT];
#pragma unroll
        for (int n = 0; n < NT; n++) {
            b[n] = next[n];
            if (k + 1 < UNITS / 16) next[n] = load_weights(w + ((k + 1) * (UNITS / 8) + n) * WARP);
        }
        multiply<MT, NT, PITCH, LOW>(acc, base + warp % 2 * (MT * 16) * PITCH + lane_offset<PITCH>(lane) + k * 32, b);
    }
}

// Calls use(row, column, two values) for this thread's results.
template <class Use>
__device__ inline void rectified(const float (&acc)[MT][NT][4], const float* bias, Use use) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        const u32 c = warp / 2 * (NT * 8) + n * 8 + lane % 4 * 2;
        const float b0 = __ldg(bias + c), b1 = __ldg(bias + c + 1);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                use(warp % 2 * (MT * 16) + m * 16 + half * 8 + lane / 4, c, leaky(fmaf(acc[m][n][2 * half], UNSCALE, b0)),
                    leaky(fmaf(acc[m][n][2 * half + 1], UNSCALE, b1)));
    }
}

// Grid: tiles of CLASSIFY_ROWS rows.
extern "C" __global__ void __launch_bounds__(CLASSIFY_THREADS, 2) classify(const __grid_constant__ ClassifyArgs p) {
    __shared__ uint4 memory[2 * LOW / 16];
    __shared__ float scores[ROWS][SEG_CLASSES];
    const u32 row = blockIdx.x * ROWS, base = shared_address(memory);

    float acc[MT][NT][4] = {};
#pragma unroll 1
    for (u32 chunk = 0; chunk < 2; chunk++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS * 2 * (UNITS / 8) / CLASSIFY_THREADS; i++) {
            const u32 n = i * CLASSIFY_THREADS + threadIdx.x;
            const u32 unit = n % (UNITS / 8), r = n / (UNITS / 8) % ROWS, part = n / (UNITS / 8) / ROWS;
            const u16* from = (const u16*)p.x + (((u64)(row + r) * 2 + part) * 2 + chunk) * UNITS + unit * 8;
            copy16(base + part * LOW + r * PITCH + unit * 16, from, row + r < p.rows);
        }
        copies_commit();
        copies_wait<0>();
        __syncthreads();
        layer(acc, base, p.w1, chunk * (UNITS / 16));
    }
    __syncthreads();
    rectified(acc, p.bias1, [&](u32 r, u32 c, float a, float b) {
        u32 high, low;
        split(a, b, high, low);
        *(u32*)((u8*)memory + r * PITCH + c * 2) = high;
        *(u32*)((u8*)memory + LOW + r * PITCH + c * 2) = low;
    });
    __syncthreads();

    float second[MT][NT][4] = {};
    layer(second, base, p.w2, 0);
    __syncthreads();
    float* hidden = (float*)memory;
    rectified(second, p.bias2, [&](u32 r, u32 c, float a, float b) {
        hidden[r * PAD + c] = a;
        hidden[r * PAD + c + 1] = b;
    });
    __syncthreads();

    const u32 r = threadIdx.x / 4;
#pragma unroll
    for (u32 k = threadIdx.x % 4; k < SEG_CLASSES; k += 4) {
        float sum = 0.0f;
#pragma unroll 8
        for (int i = 0; i < UNITS; i++) sum = fmaf(hidden[r * PAD + i], __ldg(p.w3 + k * UNITS + i), sum);
        scores[r][k] = sum + __ldg(p.bias3 + k);
    }
    __syncthreads();
    if (threadIdx.x >= ROWS || row + threadIdx.x >= p.rows) return;

    const float* v = scores[threadIdx.x];
    float top = v[0], sum = 0.0f;
#pragma unroll
    for (int k = 1; k < SEG_CLASSES; k++) top = fmaxf(top, v[k]);
#pragma unroll
    for (int k = 0; k < SEG_CLASSES; k++) sum += expf(v[k] - top);
    const float log_sum = top + logf(sum);
    float highest = v[0] - log_sum;
    u32 best = 0;
#pragma unroll
    for (int k = 0; k < SEG_CLASSES; k++) {
        const float log_probability = v[k] - log_sum;
        if (log_probability > highest) best = k, highest = log_probability; // the first maximum
        if (p.log_probabilities) p.log_probabilities[(u64)(row + threadIdx.x) * SEG_CLASSES + k] = log_probability;
    }
    p.classes[row + threadIdx.x] = (u8)best;
}
