// The first convolution: 1 -> 32 channels, 3x3, padding 1, on features [batch][frames][mel] of FP32. The map's height is
// mel and its width is frames, so a block transposes its features while it loads them.
//
// The output is 32 times the input: the kernel runs at the speed of its stores. A lane owns one frame and STEM_PIXELS mel
// rows, a warp stores 32 neighbouring frames of a unit; the weights are broadcast from shared memory.
#include "common/basic.cuh"

constexpr int CHANNELS = 32, TAPS = 9;
constexpr int ROWS = STEM_THREADS / WARP * STEM_PIXELS; // mel rows of a block, which has 32 frames
constexpr int ROWS_IN = ROWS + 2, COLS_IN = WARP + 2;
constexpr int PITCH = COLS_IN + 1; // odd: neighbouring mels of a frame go to different banks

static_assert(ROWS == STEM_ROWS, "tiles.h");

// UNIT channels fill 16 bytes: 4 of FP32 or 8 of FP16.
template <int UNIT>
__device__ inline void stem(const ConvArgs& p) {
    __shared__ float x[ROWS_IN * PITCH];
    __shared__ float4 weights[TAPS][CHANNELS / 4];
    const u32 row = blockIdx.y * ROWS, col = blockIdx.x * WARP, image = blockIdx.z;

    const float* features = (const float*)p.x + (u64)image * p.w_in * p.h_in;
    for (u32 i = threadIdx.x; i < ROWS_IN * COLS_IN; i += STEM_THREADS) {
        const u32 r = i % ROWS_IN, c = i / ROWS_IN;
        const u32 mel = row + r - 1, frame = col + c - 1; // wrap before the map
        x[r * PITCH + c] = mel < p.h_in && frame < p.w_in ? __ldg(features + frame * p.h_in + mel) : 0.0f;
    }
    for (u32 i = threadIdx.x; i < TAPS * CHANNELS; i += STEM_THREADS)
        ((float*)weights)[i % TAPS * CHANNELS + i / TAPS] = __ldg((const float*)p.w + i);
    __syncthreads();

    const u32 lane = threadIdx.x % WARP, top = threadIdx.x / WARP * STEM_PIXELS;
    float in[STEM_PIXELS + 2][3];
#pragma unroll
    for (int r = 0; r < STEM_PIXELS + 2; r++)
#pragma unroll
        for (int c = 0; c < 3; c++) in[r][c] = x[(top + r) * PITCH + lane + c];

    uint4* y = (uint4*)p.y + (u64)image * (CHANNELS / UNIT) * p.h_out * p.w_out;
    bool overflow = false;
#pragma unroll 1
    for (u32 unit = 0; unit < CHANNELS / UNIT; unit++) {
        float sum[STEM_PIXELS][UNIT] = {};
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++)
#pragma unroll
            for (int n = 0; n < UNIT; n += 4) {
                const float4 w = weights[tap][unit * (UNIT / 4) + n / 4];
#pragma unroll
                for (int i = 0; i < STEM_PIXELS; i++) {
                    const float v = in[i + tap / 3][tap % 3];
                    sum[i][n] = fmaf(v, w.x, sum[i][n]), sum[i][n + 1] = fmaf(v, w.y, sum[i][n + 1]);
                    sum[i][n + 2] = fmaf(v, w.z, sum[i][n + 2]), sum[i][n + 3] = fmaf(v, w.w, sum[i][n + 3]);
                }
            }
        float bias[UNIT];
#pragma unroll
        for (int n = 0; n < UNIT; n++) bias[n] = __ldg(p.bias + unit * UNIT + n);
#pragma unroll
        for (int i = 0; i < STEM_PIXELS; i++) {
            const u32 r = row + top + i, c = col + lane;
            if (r >= p.h_out || c >= p.w_out) continue;
#pragma unroll
            for (int n = 0; n < UNIT; n++) {
                sum[i][n] += bias[n];
                if (p.relu) sum[i][n] = relu(sum[i][n]);
                if (UNIT == 8) overflow |= fabsf(sum[i][n]) > FP16_MAX;
            }
            y[(unit * p.h_out + r) * p.w_out + c] = packed(sum[i]);
        }
    }
    if (UNIT == 8 && overflow) *p.overflow = 1;
}

extern "C" __global__ void __launch_bounds__(STEM_THREADS) stem_f32(const __grid_constant__ ConvArgs p) { stem<4>(p); }
extern "C" __global__ void __launch_bounds__(STEM_THREADS) stem_f16(const __grid_constant__ ConvArgs p) { stem<8>(p); }
