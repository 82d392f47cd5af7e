// Convolutions by FP32 multiply-adds, on any GPU from 7.5: 3x3 at stride 1 and 2, 1x1 at stride 2 and, as a
// matrix product over a map of one row, at stride 1.
//
// A block computes ROWS x F32_COLS pixels of NT channels, a thread 8 neighbouring pixels of a row and CHANNELS (8 or 4)
// channels of each in registers. Shared memory holds, for one unit of 4 input channels, the tile of the input with its
// border and the weights of all taps. For every kernel row a thread reads a pixel of the input once and uses it for all
// taps that meet it; 8 channels take 768 multiply-adds from 34 loads of 16 bytes at stride 1, 41 at stride 2.
//
// Every kernel sums in the same order (input unit, ky, kx, channel of the unit; at stride 2 kx goes 0, 2, 1), so the
// choice of tile does not change a bit of the result.
#include "common/basic.cuh"

constexpr int PIXELS = 8; // of a thread
constexpr int GROUPS = F32_COLS / PIXELS;
static_assert(GROUPS == 8 && WARP == 32, "a warp is 8 groups of pixels x 4 of channels");

template <int TAPS_, int STRIDE_, int ROWS_, int NT_, int CHANNELS_, int STAGES_>
struct Shape {
    static constexpr int TAPS = TAPS_; // along each axis
    static constexpr int STRIDE = STRIDE_;
    static constexpr int ROWS = ROWS_;
    static constexpr int NT = NT_;
    static constexpr int CHANNELS = CHANNELS_; // of a thread
    static constexpr int STAGES = stages(STAGES_);

    static constexpr int WARP_CHANNELS = 4 * CHANNELS, WARPS_N = NT / WARP_CHANNELS, WARPS = ROWS * WARPS_N;
    static constexpr int THREADS = WARP * WARPS;
    static constexpr int PAD = TAPS / 2;
    // A 1x1 kernel at stride 2 needs every other row and column only: fetched pixels lie GAP apart.
    static constexpr int GAP = TAPS == 1 ? STRIDE : 1, STEP = STRIDE / GAP;
    static constexpr int ROWS_IN = (ROWS - 1) * STEP + TAPS, COLS_IN = (F32_COLS - 1) * STEP + TAPS;

    // A row in shared memory is one run of columns, or at stride 2 the even columns and then the odd ones, so that the
    // pixels of a tap are neighbours. A hole after every 8 columns lets the 8 groups of a warp meet different banks.
    static constexpr int place(int column) { return column + column / PIXELS; }
    static constexpr int ODD = place((COLS_IN + 1) / 2 - 1) + 1;
    static constexpr int PITCH = STEP == 1 ? place(COLS_IN - 1) + 1 : ODD + place(COLS_IN / 2 - 1) + 1;
    static constexpr int A_UNITS = ROWS_IN * PITCH, W_UNITS = TAPS * TAPS * NT;
    static constexpr int STAGE = A_UNITS + W_UNITS;

    // The epilogue turns one unit of every thread's pixels at a time.
    static constexpr int TURNED = WARPS * 4 * F32_COLS;
    static constexpr int SHARED = (STAGES * STAGE > TURNED ? STAGES * STAGE : TURNED) * UNIT_BYTES;
    static_assert(NT % WARP_CHANNELS == 0 && STEP <= 2, "whole warps");
};

// Where a thread stands. Pixels and channels alternate in the lane's bits so that lanes 2 apart read the same weights
// and neighbours the same pixels: the halves of a load of 16 bytes then share their way through shared memory.
template <class S>
struct Thread {
    u32 index;
    u32 lane = index % WARP, warp = index / WARP;
    u32 group = lane / 2 % 8;                                     // of pixels
    u32 part = lane % 2 + lane / 16 * 2;                          // of the warp's channels
    u32 row = warp / S::WARPS_N;                                  // in the tile
    u32 channel = warp % S::WARPS_N * S::WARP_CHANNELS;           // the warp's first, in the tile
};

// Copies one unit of the tile's input: a warp takes whole rows, so that a lane's addresses differ by constants.
template <class S>
__device__ inline void copy_input(uint4* stage, const uint4* unit, u32 h_in, u32 w_in, u32 row, u32 col, const Thread<S>& t) {
    constexpr int STRETCHES = (S::COLS_IN + WARP - 1) / WARP;
    const u32 x = (col * S::STEP + t.lane) * S::GAP - S::PAD; // wraps left of the map
    const u32 place = S::STEP == 1 ? S::place(t.lane) : t.lane % 2 * S::ODD + S::place(t.lane / 2);
#pragma unroll
    for (int i = 0; i < S::ROWS_IN; i += S::WARPS) {
        const u32 r = i + t.warp, y = (row * S::STEP + r) * S::GAP - S::PAD; // wraps above the map
        if (r >= S::ROWS_IN) break;
        const uint4* from = unit + (long long)(int)(y * w_in + x); // both wraps undo each other where it is read
        uint4* to = stage + r * S::PITCH + place;
#pragma unroll
        for (int j = 0; j < STRETCHES; j++)
            if ((j + 1) * WARP <= S::COLS_IN || t.lane + j * WARP < S::COLS_IN)
                copy16(to + S::place(j * WARP / S::STEP), from + j * WARP * S::GAP,
                       y < h_in && x + j * WARP * S::GAP < w_in);
    }
}

template <class S>
using Sums = float[PIXELS][S::CHANNELS];

// One kernel row of one unit. `a` is the first pixel of the thread's group, `w` the thread's channels of tap 0.
template <class S>
__device__ inline void multiply_row(Sums<S>& sum, const uint4* a, const uint4* w) {
    float x[PIXELS][4]; // a ring: the next tap's pixels are this tap's, moved by one
#pragma unroll
    for (int tap = 0; tap < S::TAPS; tap++) {
        const int kx = S::STEP == 2 && tap > 0 ? 3 - tap : tap; // at stride 2 the even columns first
        const int plane = S::STEP == 2 ? kx % 2 * S::ODD : 0, first = kx / S::STEP;
#pragma unroll
        for (int p = tap == 0 || plane > 0 ? 0 : PIXELS - 1; p < PIXELS; p++)
            unpack(x[(first + p) % PIXELS], a[plane + S::place(first + p)]);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            float weight[S::CHANNELS / 4][4];
#pragma unroll
            for (int n = 0; n < S::CHANNELS / 4; n++) unpack(weight[n], w[(kx * 4 + c) * (S::NT / 4) + n]);
#pragma unroll
            for (int p = 0; p < PIXELS; p++)
#pragma unroll
                for (int n = 0; n < S::CHANNELS; n++)
                    sum[p][n] = fmaf(x[(first + p) % PIXELS][c], weight[n / 4][n % 4], sum[p][n]);
        }
    }
}

// Bias, residual, ReLU, store. The warp turns its sums through shared memory first, since a thread's 8 pixels would make
// each store touch 32 pieces; turned, a store writes 32 neighbouring pixels of one unit.
template <class S>
struct Epilogue {
    static constexpr int UNITS = S::CHANNELS / 4, HALVES = F32_COLS / WARP, STORES = 4 * HALVES;
    const Thread<S>& t;
    uint4* turn;           // of the warp
    const uint4* residual; // of the lane's first pixel in the warp's first unit; null if there is none
    uint4* y;
    u32 plane;             // units of the output's height x width
    int width;             // pixels from the lane's first to the end of the map, not positive if it lies behind
    bool rectify;

    // Store `i` of turn `n`: the distance from the lane's first pixel.
    __device__ u32 unit(int n, int i) const { return (i / HALVES * UNITS + n) * plane; }
    __device__ static constexpr int pixel(int i) { return i % HALVES * WARP; }
    __device__ bool inside(int i) const { return width > pixel(i); }

    // All loads of a turn are under way before the first is used.
    __device__ void load(uint4 (&r)[STORES], int n) const {
#pragma unroll
        for (int i = 0; i < STORES; i++) r[i] = load16(residual + unit(n, i) + pixel(i), residual && inside(i));
    }

    __device__ void turn_sums(const Sums<S>& sum, float4 bias, int n) const {
        __syncwarp(); // the turn before is used up
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const float* c = sum[i] + 4 * n;
            const float v[4] = {c[0] + bias.x, c[1] + bias.y, c[2] + bias.z, c[3] + bias.w};
            turn[t.part * F32_COLS + t.group * PIXELS + (i ^ t.group)] = packed(v); // groups meet different banks
        }
        __syncwarp();
    }

    __device__ void store(const uint4 (&added)[STORES], int n) const {
#pragma unroll
        for (int i = 0; i < STORES; i++) {
            const u32 at = pixel(i) + t.lane;
            float v[4], r[4];
            unpack(v, turn[i / HALVES * F32_COLS + (at ^ at / PIXELS % 8)]);
            unpack(r, added[i]);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                v[c] = residual ? v[c] + r[c] : v[c];
                v[c] = rectify ? relu(v[c]) : v[c];
            }
            if (inside(i)) y[unit(n, i) + pixel(i)] = packed(v);
        }
    }

    __device__ void run(const Sums<S>& sum, const float* bias) const {
        uint4 r[STORES];
#pragma unroll
        for (int n = 0; n < UNITS; n++) {
            load(r, n);
            turn_sums(sum, __ldg((const float4*)bias + t.part * UNITS + n), n);
            store(r, n);
        }
    }
};

template <class S>
__device__ inline void convolve(const ConvArgs& p) {
    extern __shared__ uint4 memory[];
    const Thread<S> t = {threadIdx.x};
    const u32 slices = p.cout / S::NT, image = blockIdx.z / slices, slice = blockIdx.z % slices;
    const u32 row = blockIdx.y * S::ROWS, col = blockIdx.x * F32_COLS;
    const u32 units = p.cin / 4, plane = p.h_in * p.w_in;
    const uint4* input = (const uint4*)p.x + (u64)image * units * plane;
    const uint4* weights = (const uint4*)p.w + slice * units * S::W_UNITS;
    const bool inside = row + t.row < p.h_out; // else the warp only helps to copy
    const u32 a = t.row * S::STEP * S::PITCH + t.group * (PIXELS + 1);
    const u32 w = S::A_UNITS + (t.channel + t.part * S::CHANNELS) / 4;

    Sums<S> sum = {};
    pipeline<S::STAGES>(
        units,
        [&](u32 unit, u32 stage) {
            // Addresses computed afresh for each unit: hoisted, they would cost the registers that the sums need.
            const Thread<S> fresh = {opaque(threadIdx.x)};
            uint4* at = memory + stage * S::STAGE;
            copy_input<S>(at, input + (u64)unit * plane, p.h_in, p.w_in, row, col, fresh);
#pragma unroll
            for (int n = 0; n < S::W_UNITS; n += S::THREADS)
                if (n + S::THREADS <= S::W_UNITS || n + fresh.index < S::W_UNITS)
                    copy16(at + S::A_UNITS + n + fresh.index, weights + unit * S::W_UNITS + n + fresh.index, true);
        },
        [&](u32 stage) {
            const uint4* at = memory + stage * S::STAGE;
            if (inside)
#pragma unroll 1 // three times 768 multiply-adds would not fit the nearest instruction cache
                for (int ky = 0; ky < S::TAPS; ky++)
                    multiply_row<S>(sum, at + a + ky * S::PITCH, at + w + ky * S::TAPS * S::NT);
        });

    __syncthreads(); // the epilogue overwrites the stages
    if (!inside) return;
    const Thread<S> last = {opaque(threadIdx.x)}; // for the same reason
    const u32 channel = slice * S::NT + last.channel, to = p.h_out * p.w_out;
    const u64 first = ((u64)image * (p.cout / 4) + channel / 4) * to + (row + last.row) * p.w_out + col + last.lane;
    const uint4* residual = (const uint4*)p.residual;
    const Epilogue<S> epilogue = {last, memory + last.warp * 4 * F32_COLS, residual ? residual + first : nullptr,
                                  (uint4*)p.y + first, to, (int)(p.w_out - col - last.lane), p.relu != 0};
    epilogue.run(sum, p.bias + channel);
}

#if __CUDA_ARCH__ >= 800
#define SHARED_OF(NAME) NAME##_SHARED
#else
#define SHARED_OF(NAME) NAME##_SHARED_75
#endif

#define ENTRY(NAME, ...)                                                                                              \
    extern "C" __global__ void __launch_bounds__(NAME##_THREADS, NAME##_BLOCKS) NAME(const __grid_constant__ ConvArgs p) { \
        typedef Shape<__VA_ARGS__> S;                                                                                 \
        static_assert(S::THREADS == NAME##_THREADS && S::SHARED == SHARED_OF(NAME) && S::ROWS == NAME##_ROWS &&       \
                          S::NT == NAME##_NT,                                                                         \
                      "tiles.h");                                                                                     \
        convolve<S>(p);                                                                                               \
    }

//                       taps stride rows NT channels stages
ENTRY(conv3x3_f32_n32, 3, 1, 8, 32, 8, 2)
ENTRY(conv3x3_f32_n64, 3, 1, 1, 64, 4, 2)
ENTRY(conv3x3s2_f32_n64, 3, 2, 1, 64, 4, 2)
ENTRY(conv1x1s2_f32_n64, 1, 2, 2, 64, 8, 4)
ENTRY(gemm_f32_n64, 1, 1, 1, 64, 4, 4)
