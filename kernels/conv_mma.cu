// Convolutions on the tensor cores of any GPU: 3x3 at stride 1 and 2, 1x1 at stride 2 and,
// as a matrix product over a map of one row, at stride 1. FP16 from 7.5, TF32 and 3xTF32
// from 8.0.
//
// A block computes ROWS x COLS pixels and NT output channels, a warp 16 BLOCKS_M of the pixels and 32 of the channels.
// Shared memory holds, for a pair of units, the tile of the input with its border and the weights of all taps, in a ring
// of stages that asynchronous copies fill. Eight neighbouring pixels of a unit are 128 consecutive bytes, so ldmatrix
// reads them without bank conflicts, whatever the tap shifts; at stride 2 the even columns of a row come first, then the
// odd ones, and the same holds.
#include "common/epilogue.cuh"

template <Math M_, int TAPS_, int STRIDE_, int ROWS_, int COLS_, int NT_, int BLOCKS_M_, int STAGES_>
struct Shape {
    static constexpr Math M = M_;
    static constexpr int TAPS = TAPS_; // along each axis
    static constexpr int STRIDE = STRIDE_;
    static constexpr int ROWS = ROWS_, COLS = COLS_;
    static constexpr int NT = NT_;
    static constexpr int BLOCKS_M = BLOCKS_M_;
    static constexpr int BLOCKS_N = 4;
#if __CUDA_ARCH__ >= 800
    static constexpr int STAGES = STAGES_;
#else
    static constexpr int STAGES = 1; // without asynchronous copies a second block hides the latency instead
#endif

    static constexpr int PARTS = M == TF32X3 ? 2 : 1;
    static constexpr int WARPS_N = NT / 32, WARPS_M = ROWS * COLS / (16 * BLOCKS_M);
    static constexpr int THREADS = WARP * WARPS_M * WARPS_N;
    static constexpr int PAD = TAPS / 2;
    // A 1x1 kernel at stride 2 needs every other row and column only: `GAP` input pixels lie between fetched ones.
    static constexpr int GAP = TAPS == 1 ? STRIDE : 1, STEP = STRIDE / GAP;
    static constexpr int ROWS_IN = (ROWS - 1) * STEP + TAPS, COLS_IN = (COLS - 1) * STEP + TAPS;
    static constexpr int EVEN = STEP == 2 ? (COLS_IN + 1) / 2 : COLS_IN; // columns before the odd ones
    static constexpr int PLANE = ROWS_IN * COLS_IN;
    static constexpr int A_UNITS = 2 * PLANE, W_UNITS = 2 * TAPS * TAPS * NT;
    static constexpr int STAGE = (A_UNITS + PARTS * W_UNITS) * UNIT_BYTES;
    static constexpr int COPIES = (A_UNITS + THREADS - 1) / THREADS;
    static_assert(COLS % 16 == 0, "a block of 16 pixels lies in one row");

    // Position, within a row in shared memory, of the tap's pixel for output column 0.
    __device__ static constexpr int tap_column(int kx) { return STEP == 1 ? kx : kx / 2 + (kx % 2) * EVEN; }
};

// What one thread copies of the input for every stage.
template <class S>
struct Source {
    u32 from[S::COPIES]; // in units, from the pair's first; NONE outside the map
    static constexpr u32 NONE = 0xffffffff;

    __device__ Source(const ConvArgs& p, u32 row, u32 col) {
#pragma unroll
        for (int i = 0; i < S::COPIES; i++) {
            const u32 n = threadIdx.x + i * S::THREADS, in_plane = n % S::PLANE, at = in_plane % S::COLS_IN;
            const u32 c = S::STEP == 1 ? at : at < S::EVEN ? 2 * at : 2 * (at - S::EVEN) + 1;
            const u32 y = (row * S::STEP + in_plane / S::COLS_IN) * S::GAP - S::PAD; // wraps above the map
            const u32 x = (col * S::STEP + c) * S::GAP - S::PAD;
            from[i] = n < S::A_UNITS && y < p.h_in && x < p.w_in ? (n / S::PLANE * p.h_in + y) * p.w_in + x : NONE;
        }
    }

    __device__ void copy(u32 stage, const uint4* input, const char* weights, u32 low) const {
#pragma unroll
        for (int i = 0; i < S::COPIES; i++) {
            const u32 n = threadIdx.x + i * S::THREADS;
            const bool valid = from[i] != NONE;
            if (n < S::A_UNITS) copy16(stage + n * UNIT_BYTES, input + (valid ? from[i] : 0), valid);
        }
        const u32 w = stage + S::A_UNITS * UNIT_BYTES;
#pragma unroll
        for (int part = 0; part < S::PARTS; part++)
            for (u32 n = threadIdx.x; n < S::W_UNITS; n += S::THREADS)
                copy16(w + (part * S::W_UNITS + n) * UNIT_BYTES, weights + part * (u64)low + n * UNIT_BYTES, true);
        copies_commit();
    }
};

template <class S>
using Sums = float[S::BLOCKS_M][S::BLOCKS_N][4];

template <class S>
__device__ inline void multiply(Sums<S>& sum, const u32 (&a)[4], const u32 (&b)[2 * S::BLOCKS_N], int m) {
#pragma unroll
    for (int n = 0; n < S::BLOCKS_N; n++) {
        if constexpr (S::M == F16)
            mma_f16(sum[m][n], a, b[2 * n], b[2 * n + 1]);
        else
            mma_tf32(sum[m][n], a, b[2 * n], b[2 * n + 1]);
    }
}

// All taps of the pair of units in `stage`. `a` and `w` are where this lane's rows of the matrices start.
template <class S>
__device__ inline void multiply_stage(Sums<S>& sum, const u32 (&a)[S::BLOCKS_M], u32 w) {
#pragma unroll
    for (int ky = 0; ky < S::TAPS; ky++)
#pragma unroll
        for (int kx = 0; kx < S::TAPS; kx++) {
            const u32 slot = (kx * 2 * S::TAPS + S::TAPS - 1 - ky) * S::NT * UNIT_BYTES; // see pack.cu
            u32 b[S::PARTS][2 * S::BLOCKS_N];
#pragma unroll
            for (int part = 0; part < S::PARTS; part++)
#pragma unroll
                for (int n = 0; n < S::BLOCKS_N; n += 2) {
                    u32 r[4];
                    load_matrices(r, w + slot + (part * S::W_UNITS + n * 8) * UNIT_BYTES);
                    b[part][2 * n] = r[0], b[part][2 * n + 1] = r[1], b[part][2 * n + 2] = r[2], b[part][2 * n + 3] = r[3];
                }
#pragma unroll
            for (int m = 0; m < S::BLOCKS_M; m++) {
                u32 x[4];
                load_matrices(x, a[m] + (ky * S::COLS_IN + S::tap_column(kx)) * UNIT_BYTES);
                if constexpr (S::M == TF32X3) {
                    u32 high[4], low[4];
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const float v = __uint_as_float(x[i]);
                        high[i] = x[i] & 0xffffe000; // the product ignores the bits below as well
                        // What is not finite stays in the high part alone: inf - inf would make a NaN of it.
                        low[i] = fabsf(v) < 3.0e38f ? __float_as_uint(v - __uint_as_float(high[i])) : 0;
                    }
                    multiply<S>(sum, low, b[0], m);
                    multiply<S>(sum, high, b[S::PARTS - 1], m);
                    multiply<S>(sum, high, b[0], m);
                } else {
                    multiply<S>(sum, x, b[0], m);
                }
            }
        }
}

template <class S>
__device__ inline void convolve(const ConvArgs& p) {
    extern __shared__ __align__(128) char memory[];
    const u32 base = shared_address(memory), lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 slices = p.cout / S::NT, image = blockIdx.z / slices, slice = blockIdx.z % slices;
    const u32 row = blockIdx.y * S::ROWS, col = blockIdx.x * S::COLS;
    const u32 units = p.cin / UNIT<S::M>, pairs = units / 2;
    const uint4* input = (const uint4*)p.x + (u64)image * units * p.h_in * p.w_in;
    const char* weights = (const char*)p.w + (u64)slice * pairs * S::W_UNITS * UNIT_BYTES;
    const u32 pair_units = 2 * p.h_in * p.w_in, low = p.cin * p.cout * S::TAPS * S::TAPS * 4;
    const Source<S> source(p, row, col);

    // ldmatrix: lanes 0-7 address pixels 0-7 of the first unit, 8-15 pixels 8-15, 16-31 the same of the second unit.
    const u32 first = warp / S::WARPS_N * 16 * S::BLOCKS_M, channel = warp % S::WARPS_N * 32;
    u32 a[S::BLOCKS_M];
#pragma unroll
    for (int m = 0; m < S::BLOCKS_M; m++) {
        const u32 pixel = first + 16 * m;
        a[m] = base + ((lane / 16) * S::PLANE + pixel / S::COLS * S::STEP * S::COLS_IN + pixel % S::COLS + lane % 16) * UNIT_BYTES;
    }
    // Lanes 0-7 address channels 0-7 of the first unit, 8-15 the same of the second, 16-31 channels 8-15.
    const u32 w = base + (S::A_UNITS + lane / 8 % 2 * S::TAPS * S::NT + channel + lane / 16 * 8 + lane % 8) * UNIT_BYTES;

    Sums<S> sum = {};
#pragma unroll
    for (int s = 0; s < S::STAGES - 1; s++)
        if (s < pairs)
            source.copy(base + s * S::STAGE, input + (u64)s * pair_units, weights + (u64)s * S::W_UNITS * UNIT_BYTES, low);
        else
            copies_commit();
    for (u32 pair = 0; pair < pairs; pair++) {
        const u32 ahead = pair + S::STAGES - 1;
        if constexpr (S::STAGES == 1) __syncthreads();
        if constexpr (S::STAGES > 1) {
            copies_wait<(S::STAGES > 1 ? S::STAGES - 2 : 0)>();
            __syncthreads();
        }
        if (ahead < pairs)
            source.copy(base + ahead % S::STAGES * S::STAGE, input + (u64)ahead * pair_units,
                        weights + (u64)ahead * S::W_UNITS * UNIT_BYTES, low);
        else
            copies_commit();
        if constexpr (S::STAGES == 1) {
            copies_wait<0>();
            __syncthreads();
        }
        const u32 offset = pair % S::STAGES * S::STAGE;
        u32 at[S::BLOCKS_M];
#pragma unroll
        for (int m = 0; m < S::BLOCKS_M; m++) at[m] = a[m] + offset;
        multiply_stage<S>(sum, at, w + offset);
    }

    const auto place_of = [&](int i) {
        const u32 pixel = first + i / S::BLOCKS_N * 16;
        return Place{image, slice * S::NT + channel + i % S::BLOCKS_N * 8, row + pixel / S::COLS, col + pixel % S::COLS};
    };
    Piece<S::M> ahead[4];
    begin_fragments<S::M, 4>(p, place_of, ahead);
    finish_fragments<S::M, S::BLOCKS_M * S::BLOCKS_N, 4>(
        p, place_of, [&](int i) -> const float(&)[4] { return sum[i / S::BLOCKS_N][i % S::BLOCKS_N]; }, ahead);
}

// Blocks that an SM should hold. The products of 7.5 take half the contraction each and need more registers.
#if __CUDA_ARCH__ >= 800
#define RESIDENT(BLOCKS) (BLOCKS)
#else
#define RESIDENT(BLOCKS) 0
#endif

#define ENTRY(NAME, ...)                                                                                              \
    extern "C" __global__ void __launch_bounds__(NAME##_THREADS, RESIDENT(NAME##_BLOCKS)) NAME(const __grid_constant__ ConvArgs p) {           \
        typedef Shape<__VA_ARGS__> S;                                                                                 \
        static_assert(S::THREADS == NAME##_THREADS && S::STAGE == NAME##_STAGE && S::ROWS == NAME##_ROWS &&           \
                          S::COLS == NAME##_COLS && S::NT == NAME##_NT,                                               \
                      "tiles.h");                                                                                     \
        convolve<S>(p);                                                                                               \
    }

//                        math  taps stride rows cols NT m stages
ENTRY(mma_f16_n32, F16, 3, 1, 4, 64, 32, 4, 3)
ENTRY(mma_f16_n64, F16, 3, 1, 4, 64, 64, 4, 3)
ENTRY(mma_f16_n64_slim, F16, 3, 1, 2, 32, 64, 2, 3)
ENTRY(mma_f16_s2_n64, F16, 3, 2, 4, 32, 64, 2, 2)
ENTRY(mma_f16_s2_n64_slim, F16, 3, 2, 2, 32, 64, 2, 2)
ENTRY(mma_f16_1x1_n64, F16, 1, 2, 4, 32, 64, 2, 3)
#if __CUDA_ARCH__ >= 800
ENTRY(mma_tf32_n32, TF32, 3, 1, 4, 64, 32, 4, 3)
ENTRY(mma_tf32_n64, TF32, 3, 1, 4, 64, 64, 4, 3)
ENTRY(mma_tf32_n64_slim, TF32, 3, 1, 2, 32, 64, 2, 3)
ENTRY(mma_tf32_s2_n64, TF32, 3, 2, 4, 32, 64, 2, 2)
ENTRY(mma_tf32_s2_n64_slim, TF32, 3, 2, 2, 32, 64, 2, 2)
ENTRY(mma_tf32_1x1_n64, TF32, 1, 2, 4, 32, 64, 2, 3)
ENTRY(mma_tf32x3_n32, TF32X3, 3, 1, 4, 64, 32, 4, 2)
ENTRY(mma_tf32x3_n64, TF32X3, 3, 1, 4, 64, 64, 4, 2)
ENTRY(mma_tf32x3_n64_slim, TF32X3, 3, 1, 2, 32, 64, 2, 2)
ENTRY(mma_tf32x3_s2_n64, TF32X3, 3, 2, 4, 32, 64, 2, 1)
ENTRY(mma_tf32x3_s2_n64_slim, TF32X3, 3, 2, 2, 32, 64, 2, 2)
ENTRY(mma_tf32x3_1x1_n64, TF32X3, 1, 2, 4, 32, 64, 2, 3)
ENTRY(mma_tf32x3_gemm_n128, TF32X3, 1, 1, 1, 128, 128, 4, 4)
#endif
