// One bidirectional LSTM layer of 128 units: the input projections of all steps as one product, then the recurrence.
//
// A block of the recurrence owns LSTM_WINDOWS windows of one direction from the first step to the last, so blocks never
// wait for each other. Its recurrent weights stay on the chip as fragments of mma.sync: all high parts and LSTM_RESIDENT
// of the 32 low fragments of a warp in registers, the rest in shared memory.
//
// The 8 columns of a product are the high and the low part of the state of 4 windows, side by side: two products give all
// four partial products, and a lane has both sums of a window. Rows are ordered so that it has the four gates of a unit,
// too: nothing is exchanged but the new state.
#include "common/split.cuh"

constexpr int GATES = 4, UNITS = SEG_HIDDEN, COLUMNS = 2 * GATES * UNITS; // columns of both directions

// --- input projections ---------------------------------------------------------------------------------------------

constexpr int ROWS = PROJECT_TILE, DEPTH = 64; // inputs of a stage
constexpr int PITCH = DEPTH * 2 + 16;          // bytes; an odd number of 16: 8 rows are in different banks
constexpr int LOW = ROWS * PITCH, STAGE = 2 * LOW;
#if __CUDA_ARCH__ >= 800
constexpr int STAGES = 2;
static_assert(STAGES * STAGE == PROJECT_SHARED, "tiles.h");
#else
constexpr int STAGES = 1;
static_assert(STAGES * STAGE == PROJECT_SHARED_75, "tiles.h");
#endif

// Grid: (8 tiles of 128 columns, tiles of 128 rows). A warp computes 64 rows x 32 columns.
extern "C" __global__ void __launch_bounds__(PROJECT_THREADS) lstm_project(const __grid_constant__ ProjectArgs p) {
    extern __shared__ uint4 memory[];
    constexpr int MT = 4, NT = 4;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 row = blockIdx.y * ROWS, column = blockIdx.x * 128 + warp / 2 * 32;
    const u32 chunks = p.width / DEPTH, base = shared_address(memory);

    auto copy = [&](u32 chunk) {
        const u32 to = base + chunk % STAGES * STAGE;
#pragma unroll
        for (int i = 0; i < ROWS * 2 * (DEPTH / 8) / PROJECT_THREADS; i++) {
            const u32 n = i * PROJECT_THREADS + threadIdx.x;
            const u32 unit = n % (DEPTH / 8), r = n / (DEPTH / 8) % ROWS, part = n / (DEPTH / 8) / ROWS;
            const u16* from = (const u16*)p.x + ((u64)(row + r) * 2 + part) * p.width + chunk * DEPTH + unit * 8;
            copy16(to + part * LOW + r * PITCH + unit * 16, from, row + r < p.rows);
        }
        copies_commit();
    };

    float acc[MT][NT][4] = {};
    uint4 next[NT];
    const uint4* w = (const uint4*)p.w + column / 8 * WARP + lane;
    auto fetch = [&](u32 step) {
#pragma unroll
        for (int n = 0; n < NT; n++) next[n] = load_weights(w + (step * (COLUMNS / 8) + n) * WARP);
    };
    fetch(0);
    copy(0);
    for (u32 chunk = 0; chunk < chunks; chunk++) {
        if (STAGES > 1 && chunk + 1 < chunks) {
            copy(chunk + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        __syncthreads();
        const u32 a = base + chunk % STAGES * STAGE + warp % 2 * 64 * PITCH + lane_offset<PITCH>(lane);
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++) {
            uint4 b[NT];
#pragma unroll
            for (int n = 0; n < NT; n++) b[n] = next[n];
            const u32 step = chunk * (DEPTH / 16) + k + 1;
            if (step < p.width / 16) fetch(step);
            multiply<MT, NT, PITCH, LOW>(acc, a + k * 32, b);
        }
        __syncthreads(); // the stage is used up
        if (STAGES == 1 && chunk + 1 < chunks) copy(chunk + 1);
    }

#pragma unroll
    for (int n = 0; n < NT; n++) {
        const u32 c = column + n * 8 + lane % 4 * 2;
        const float b0 = __ldg(p.bias + c), b1 = __ldg(p.bias + c + 1);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u32 r = row + warp % 2 * 64 + m * 16 + half * 8 + lane / 4;
                const float2 v = make_float2(fmaf(acc[m][n][2 * half], UNSCALE, b0), fmaf(acc[m][n][2 * half + 1], UNSCALE, b1));
                if (r < p.rows) *(float2*)(p.out + (u64)r * COLUMNS + c) = v;
            }
    }
}

// --- recurrence ----------------------------------------------------------------------------------------------------

constexpr int TILES = 4, STEPS = UNITS / 16; // fragments of a warp: 16 rows x 16 inputs
constexpr int FRAGMENTS = TILES * STEPS, SPILLED = FRAGMENTS - LSTM_RESIDENT;
constexpr int STATE_PITCH = UNITS * 2 + 16, STATE = 2 * LSTM_WINDOWS * STATE_PITCH; // bytes
static_assert(2 * LSTM_WINDOWS == 8 && LSTM_THREADS / WARP * 16 == UNITS, "tiles.h");
static_assert(SPILLED * LSTM_THREADS * 16 + 2 * STATE == LSTM_SHARED, "tiles.h");

// Never repeated, so that a fragment is loaded once and kept.
__device__ inline void load_once(u32 (&r)[4], const uint4* p) {
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(p));
}

// Absolute error below 2e-7; NaN stays NaN.
__device__ inline float sigmoid(float v) {
    float e, r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v * -1.44269504f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e));
    return r;
}

__device__ inline float tanh_of(float v) { return fmaf(2.0f, sigmoid(2.0f * v), -1.0f); }

// Grid: (groups of LSTM_WINDOWS windows, 2 directions).
extern "C" __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm(const __grid_constant__ LstmArgs p) {
    extern __shared__ uint4 memory[];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, direction = blockIdx.y;
    uint4* spilled = memory + threadIdx.x;
    u8* const state = (u8*)(memory + SPILLED * LSTM_THREADS); // [2][window][part][unit]

    u32 high[FRAGMENTS][4], low[LSTM_RESIDENT][4];
    const uint4* w = (const uint4*)p.w + direction * (2 * LSTM_THREADS * FRAGMENTS) + warp * FRAGMENTS * WARP + lane;
#pragma unroll
    for (int f = 0; f < FRAGMENTS; f++) load_once(high[f], w + f * WARP);
    w += LSTM_THREADS * FRAGMENTS;
#pragma unroll
    for (int f = 0; f < LSTM_RESIDENT; f++) load_once(low[f], w + f * WARP);
#pragma unroll 1
    for (int f = 0; f < SPILLED; f++) spilled[f * LSTM_THREADS] = __ldg(w + (LSTM_RESIDENT + f) * WARP);
    for (u32 i = threadIdx.x; i < 2 * STATE / 16; i += LSTM_THREADS) ((uint4*)state)[i] = make_uint4(0, 0, 0, 0);

    // This lane's two cells: one window, units 8 apart. A window past the batch repeats the last one and is not stored.
    const u32 unit = warp * 16 + lane / 4;
    const u32 window = min(blockIdx.x * LSTM_WINDOWS + lane % 4, p.batch - 1);
    const int turn = direction ? -1 : 1;
    const u32 start = direction ? p.steps - 1 : 0;
    const float* projected = p.projected + ((u64)window * p.steps + start) * COLUMNS + direction * (GATES * UNITS) + unit * GATES;
    u8* const cell = state + lane % 4 * 2 * STATE_PITCH + unit * 2;
    const u32 fetched = shared_address(state) + lane % 8 * STATE_PITCH + lane / 8 * 16;

    // Half of the threads store the state, 16 bytes each.
    const u32 stored = blockIdx.x * LSTM_WINDOWS + threadIdx.x / 32;
    const bool storing = threadIdx.x < 128 && stored < p.batch;
    u16* out = (u16*)p.out + (((u64)stored * p.steps + start) * 2 + threadIdx.x / 16 % 2) * (2 * UNITS) + direction * UNITS + threadIdx.x % 16 * 8;
    const u8* const from = state + threadIdx.x / 16 * STATE_PITCH + threadIdx.x % 16 * 16;

    float c[2] = {};
    float4 x[2], ahead[2];
#pragma unroll
    for (int q = 0; q < 2; q++) ahead[q] = __ldg((const float4*)projected + q * 8);
    __syncthreads();

#pragma unroll 1
    for (u32 step = 0; step < p.steps; step++) {
        const u32 now = step % 2 * STATE, then = STATE - now;
        x[0] = ahead[0], x[1] = ahead[1];
        if (step + 1 < p.steps) {
            projected += turn * COLUMNS;
#pragma unroll
            for (int q = 0; q < 2; q++) ahead[q] = __ldg((const float4*)projected + q * 8);
        }
        if (step > 0 && storing) {
            *(uint4*)out = *(const uint4*)(from + now);
            out += turn * (4 * UNITS);
        }

        float acc[TILES][4] = {};
#pragma unroll
        for (int k = 0; k < STEPS; k += 2) {
            u32 b[4];
            load_matrices(b, fetched + now + k * 32);
#pragma unroll
            for (int half = 0; half < 2; half++) {
#pragma unroll
                for (int m = 0; m < TILES; m++) {
                    constexpr int R = LSTM_RESIDENT;
                    const int f = m * STEPS + k + half;
                    if (f < R) {
                        mma_f16(acc[m], low[f < R ? f : 0], b[2 * half], b[2 * half + 1]);
                    } else {
                        const uint4 v = spilled[(f - R) * LSTM_THREADS];
                        const u32 a[4] = {v.x, v.y, v.z, v.w};
                        mma_f16(acc[m], a, b[2 * half], b[2 * half + 1]);
                    }
                }
#pragma unroll
                for (int m = 0; m < TILES; m++) mma_f16(acc[m], high[m * STEPS + k + half], b[2 * half], b[2 * half + 1]);
            }
        }

#pragma unroll
        for (int q = 0; q < 2; q++) {
            const float(&first)[4] = acc[2 * q], (&second)[4] = acc[2 * q + 1];
            const float input = sigmoid(fmaf(first[0] + first[1], UNSCALE, x[q].x));
            const float forget = sigmoid(fmaf(first[2] + first[3], UNSCALE, x[q].y));
            const float candidate = tanh_of(fmaf(second[0] + second[1], UNSCALE, x[q].z));
            const float output = sigmoid(fmaf(second[2] + second[3], UNSCALE, x[q].w));
            c[q] = fmaf(forget, c[q], input * candidate);
            const float h = output * tanh_of(c[q]);
            const u32 top = to_half2(h, 0.0f);
            *(u16*)(cell + then + q * 16) = (u16)top;
            *(u16*)(cell + then + STATE_PITCH + q * 16) = (u16)to_half2(h - half_low(top), 0.0f);
        }
        __syncthreads();
    }
    if (storing) *(uint4*)out = *(const uint4*)(from + p.steps % 2 * STATE);
}
