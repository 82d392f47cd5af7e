// A linear layer with many inputs and few rows, in FP32: the inputs are split over blocks, whose sums a second kernel adds
// in a fixed order. A block computes a DENSE_TILE x DENSE_TILE tile of one split, a thread 4 x 4 of it, 16 apart.
#include "common/basic.cuh"

constexpr int TILE = DENSE_TILE, STEP = DENSE_STEP;
constexpr int UNITS = STEP / 4;      // of 16 bytes, of a row of a stage
constexpr int PITCH = UNITS + 1;     // odd: neighbouring rows start in different banks
constexpr int SIDE = 16, OWN = TILE / SIDE;
constexpr int STAGES = stages(2);
static_assert(SIDE * SIDE == DENSE_THREADS && TILE * UNITS % DENSE_THREADS == 0 && UNITS % 2 == 0, "tiles.h");

// `inputs` must be a multiple of STEP.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS, 2) dense_f32(const __grid_constant__ DenseArgs p) {
    __shared__ uint4 memory[STAGES][2][TILE * PITCH]; // inputs, weights
    const u32 x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const u32 output = blockIdx.x * TILE, row = blockIdx.y * TILE, split = blockIdx.z;
    const u32 steps = p.inputs / STEP, units = p.inputs / 4;
    const u32 first = (u32)((u64)steps * split / p.splits), last = (u32)((u64)steps * (split + 1) / p.splits);

    float sum[OWN][OWN] = {};
    pipeline<STAGES>(
        last - first,
        [&](u32 step, u32 stage) {
#pragma unroll
            for (int i = 0; i < TILE * UNITS; i += DENSE_THREADS) {
                const u32 n = i + threadIdx.x, r = n / UNITS, k = n % UNITS, to = r * PITCH + k;
                const u32 from = (first + step) * UNITS + k;
                copy16(memory[stage][0] + to, (const uint4*)p.in + (u64)(row + r) * units + from, row + r < p.rows);
                copy16(memory[stage][1] + to, (const uint4*)p.w + (u64)(output + r) * units + from, output + r < p.outputs);
            }
        },
        [&](u32 stage) {
#pragma unroll 2
            for (int k = 0; k < UNITS; k++) {
                float in[OWN][4], w[OWN][4];
#pragma unroll
                for (int i = 0; i < OWN; i++) {
                    unpack(in[i], memory[stage][0][(y + i * SIDE) * PITCH + k]);
                    unpack(w[i], memory[stage][1][(x + i * SIDE) * PITCH + k]);
                }
#pragma unroll
                for (int c = 0; c < 4; c++)
#pragma unroll
                    for (int i = 0; i < OWN; i++)
#pragma unroll
                        for (int j = 0; j < OWN; j++) sum[i][j] = fmaf(in[i][c], w[j][c], sum[i][j]);
            }
        });

    float* partial = p.partial + (u64)split * p.rows * p.outputs;
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const u32 r = row + y + i * SIDE, o = output + x + j * SIDE;
            if (r < p.rows && o < p.outputs) partial[r * p.outputs + o] = sum[i][j];
        }
}

// One thread per output: the splits in their order, then the bias.
extern "C" __global__ void __launch_bounds__(DENSE_THREADS) dense_reduce(const __grid_constant__ DenseArgs p) {
    const u32 i = blockIdx.x * DENSE_THREADS + threadIdx.x, count = p.rows * p.outputs;
    if (i >= count) return;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 split = 0; split < p.splits; split++) sum += p.partial[(u64)split * count + i];
    p.out[i] = sum + p.bias[i % p.outputs];
}
