// The convolutional front of segmentation-3.0, channels last.
//
// The normalisation of the waveform is affine, so it commutes with the sinc filters: they run once over the recording, and
// every window scales its slice. The other normalisations are applied by whoever reads: a tile leaves its mean and its
// squared deviations, norm_factors combines them, so no map is read only to be measured.
#include "common/reduce.cuh"
#include "common/split.cuh"

constexpr double NORM_EPSILON = 1e-5;

__device__ inline float sample_at(const float* samples, u64 count, u64 i) { return i < count ? __ldg(samples + i) : 0.0f; }

// --- waveform ------------------------------------------------------------------------------------------------------

// Sum of f over this thread's samples: FP32 in runs of 16, FP64 across them.
template <class F>
__device__ inline double window_sum(const float* samples, u64 count, u64 first, F f) {
    double sum = 0.0;
#pragma unroll 1
    for (u32 i = threadIdx.x; i < SEG_SAMPLES; i += 16 * MOMENT_THREADS) {
        float run = 0.0f;
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const u32 n = i + k * MOMENT_THREADS;
            if (n < SEG_SAMPLES) run += f(sample_at(samples, count, first + n));
        }
        sum += run;
    }
    return sum;
}

// Sums are of deviations, first from one sample, then from the mean: an offset, however large beside the signal, costs no
// digits, and the mean of a constant signal is exact.
// Grid: windows.
extern "C" __global__ void __launch_bounds__(MOMENT_THREADS) wave_moments(const __grid_constant__ WaveArgs p) {
    const u64 first = p.first + blockIdx.x * p.step;
    const float origin = sample_at(p.samples, p.count, first);
    const double apart = window_sum(p.samples, p.count, first, [=](float v) { return v - origin; });
    const double mean = origin + block_sum<MOMENT_THREADS>(apart) / SEG_SAMPLES;
    const float centre = (float)mean;
    const double squares = window_sum(p.samples, p.count, first, [=](float v) { return (v - centre) * (v - centre); });
    const double rest = mean - centre, variance = block_sum<MOMENT_THREADS>(squares) / SEG_SAMPLES - rest * rest;
    if (threadIdx.x > 0) return;
    const double scale = p.gamma / sqrt(variance + NORM_EPSILON);
    p.norm[2 * blockIdx.x] = (float)scale;
    p.norm[2 * blockIdx.x + 1] = (float)(p.beta - mean * scale);
}

// --- sinc filters --------------------------------------------------------------------------------------------------

constexpr int STRIDE = 10, FILTERS = SINC_FILTERS;
constexpr int OWN = SINC_TILE / WARP;                          // outputs of a thread, WARP apart
constexpr int GROUP = FILTERS / (SINC_THREADS / WARP);         // filters of a warp
constexpr int TURNS = SINC_TAPS_PADDED / STRIDE, CHUNK = 7;    // taps in turns of STRIDE, of a chunk
constexpr int PHASE = SINC_TILE + TURNS + 1;                   // samples of one phase: neighbouring outputs are neighbours
static_assert(OWN == 8 && GROUP == 10 && TURNS * STRIDE == SINC_TAPS_PADDED, "tiles.h");

// Grid: (tiles of SINC_TILE outputs, segments). A warp has 10 filters, its lanes 8 outputs each.
extern "C" __global__ void __launch_bounds__(SINC_THREADS, 2) sinc_filter(const __grid_constant__ SincFilterArgs p) {
    __shared__ float samples[STRIDE * PHASE];
    __shared__ float2 taps[CHUNK * STRIDE * FILTERS / 2];
    const u32 lane = threadIdx.x % WARP, group = threadIdx.x / WARP, output = blockIdx.x * SINC_TILE;
    const u64 first = p.first + blockIdx.y * p.step + (u64)output * STRIDE;
    for (u32 i = threadIdx.x; i < STRIDE * PHASE; i += SINC_THREADS)
        samples[i % STRIDE * PHASE + i / STRIDE] = sample_at(p.samples, p.count, first + i);

    float sum[OWN][GROUP] = {};
#pragma unroll 1
    for (u32 turn = 0; turn < TURNS; turn += CHUNK) {
        const u32 turns = min(CHUNK, TURNS - turn);
        __syncthreads();
        for (u32 i = threadIdx.x; i < turns * STRIDE * FILTERS / 2; i += SINC_THREADS)
            taps[i] = __ldg((const float2*)p.filters + turn * STRIDE * FILTERS / 2 + i);
        __syncthreads();
#pragma unroll 1
        for (u32 q = 0; q < turns; q++) {
            const float* x = samples + lane + turn + q;
            const float2* w = taps + q * STRIDE * FILTERS / 2 + group * (GROUP / 2);
#pragma unroll
            for (int r = 0; r < STRIDE; r++) {
                float2 tap[GROUP / 2];
#pragma unroll
                for (int n = 0; n < GROUP / 2; n++) tap[n] = w[r * (FILTERS / 2) + n];
#pragma unroll
                for (int i = 0; i < OWN; i++) {
                    const float v = x[r * PHASE + i * WARP];
#pragma unroll
                    for (int n = 0; n < GROUP / 2; n++) {
                        sum[i][2 * n] = fmaf(v, tap[n].x, sum[i][2 * n]);
                        sum[i][2 * n + 1] = fmaf(v, tap[n].y, sum[i][2 * n + 1]);
                    }
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const u32 o = output + lane + i * WARP;
        if (o >= p.outputs) continue;
        float2* out = (float2*)(p.out + ((u64)blockIdx.y * p.outputs + o) * FILTERS + group * GROUP);
#pragma unroll
        for (int n = 0; n < GROUP / 2; n++) out[n] = make_float2(sum[i][2 * n], sum[i][2 * n + 1]);
    }
}

// --- statistics of a tile ------------------------------------------------------------------------------------------

// Thread `channel` of group `group` holds COUNT frames of a tile, of which `frames` from its first on are there; the block
// writes the mean of every channel and its squared deviations from it.
//
// The mean is the first value plus the mean deviation from it. In a constant channel all deviations are 0 and the mean is
// that value, to the bit; norm_factors keeps it, and the channel leaves its normalisation as the shift alone. A mean from
// rounded sums would be off by its last digits, which the scale of a channel without variance, 316 times the gain,
// would turn into a signal.
template <int GROUPS, int CHANNELS, int COUNT>
__device__ inline void tile_statistics(const float (&v)[COUNT], u32 channel, u32 group, u32 frames, float (*shared)[CHANNELS], float* partial) {
    const u32 total = min((u32)(GROUPS * COUNT), frames); // frames of the tile
    if (group == 0) shared[GROUPS][channel] = v[0];
    __syncthreads();
    const float origin = shared[GROUPS][channel];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (group * COUNT + i < total) sum += v[i] - origin;
    shared[group][channel] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) sum += shared[i][channel];
    __syncthreads();
    const float mean = origin + sum / total;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (group * COUNT + i < total) squares = fmaf(v[i] - mean, v[i] - mean, squares);
    shared[group][channel] = squares;
    __syncthreads();
    if (group > 0) return;
    squares = 0.0f;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) squares += shared[i][channel];
    partial[2 * channel] = mean;
    partial[2 * channel + 1] = squares;
}

// Grid: (tiles of SINC_POOL_TILE frames, windows).
extern "C" __global__ void __launch_bounds__(SINC_POOL_THREADS) sinc_pool(const __grid_constant__ SincPoolArgs p) {
    constexpr int GROUPS = SINC_POOL_THREADS / FILTERS, COUNT = SINC_POOL_TILE / GROUPS;
    __shared__ float shared[GROUPS + 1][FILTERS];
    const u32 channel = threadIdx.x % FILTERS, group = threadIdx.x / FILTERS, window = blockIdx.y;
    const u32 frame = blockIdx.x * SINC_POOL_TILE, frames = SINC_FRAMES - frame;
    const float scale = __ldg(p.norm + 2 * window), shift = __ldg(p.sums + channel) * __ldg(p.norm + 2 * window + 1);
    const float* in = p.filtered + (p.first + window * p.step + frame * 3) * FILTERS + channel;
    float* out = p.out + ((u64)window * SINC_FRAMES + frame) * FILTERS + channel;
    float v[COUNT] = {};
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const u32 f = group * COUNT + i;
        if (f >= frames) continue;
#pragma unroll
        for (int k = 0; k < 3; k++) v[i] = fmaxf(v[i], fabsf(fmaf(__ldg(in + (f * 3 + k) * FILTERS), scale, shift)));
        out[f * FILTERS] = v[i];
    }
    const u64 tile = (u64)window * gridDim.x + blockIdx.x;
    tile_statistics<GROUPS>(v, channel, group, frames, shared, p.partial + tile * FILTERS * 2);
}

// Grid: windows. Tiles are combined in FP64, in a fixed order; the product of a mean and a number of frames, and the sum of
// equal ones, are exact in it.
extern "C" __global__ void __launch_bounds__(NORM_THREADS) norm_factors(const __grid_constant__ NormArgs p) {
    constexpr int WIDTH = 128, PARTS = NORM_THREADS / WIDTH;
    __shared__ double shared[PARTS][WIDTH];
    const u32 channel = threadIdx.x % WIDTH, part = threadIdx.x / WIDTH;
    const u32 tiles = (p.frames + p.tile - 1) / p.tile;
    const float2* partial = (const float2*)p.partial + (u64)blockIdx.x * tiles * p.width + channel;
    const bool real = channel < p.channels;
    double mean = 0.0, squares = 0.0;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0.0;
        if (real)
#pragma unroll 4
            for (u32 tile = part; tile < tiles; tile += PARTS) {
                const float2 v = __ldg(partial + tile * p.width);
                const u32 count = min(p.tile, p.frames - tile * p.tile);
                const double apart = (double)v.x - mean;
                sum += pass == 0 ? (double)v.x * count : v.y + apart * apart * count;
            }
        shared[part][channel] = sum;
        __syncthreads();
        sum = 0.0;
#pragma unroll
        for (int i = 0; i < PARTS; i++) sum += shared[i][channel];
        __syncthreads();
        (pass == 0 ? mean : squares) = sum / p.frames;
    }
    if (part > 0 || channel >= p.width) return;
    float4 norm = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (real) norm = make_float4((float)mean, (float)(p.gamma[channel] / sqrt(squares + NORM_EPSILON)), p.beta[channel], 0.0f);
    ((float4*)p.norm)[(u64)blockIdx.x * p.width + channel] = norm;
}

// --- convolutions --------------------------------------------------------------------------------------------------

__device__ inline float normalised(float v, float4 norm) { return leaky(fmaf(v - norm.x, norm.y, norm.z)); }

// Four neighbouring channels, normalised and split, as 8 bytes of each part.
__device__ inline void normalised4(float4 v, const float4* norm, uint2& high, uint2& low) {
    split(normalised(v.x, __ldg(norm)), normalised(v.y, __ldg(norm + 1)), high.x, low.x);
    split(normalised(v.z, __ldg(norm + 2)), normalised(v.w, __ldg(norm + 3)), high.y, low.y);
}

// Channels last, a convolution over 5 frames is 5 products of the same tile, one row further each. A block computes 32
// pooled frames, a warp 48 frames x 16 channels of them.
template <int WIDTH>
__device__ inline void time_conv(const TimeConvArgs& p) {
    constexpr int POOLED = TIME_CONV_TILE, FRAMES = 3 * POOLED, TAPS = 5, CHANNELS = TIME_CONV_CHANNELS;
    constexpr int ROWS = FRAMES + TAPS - 1, PITCH = WIDTH * 2 + 16, LOW = ROWS * PITCH; // bytes
    constexpr int MT = 3, NT = 2, STEPS = TAPS * WIDTH / 16;
    constexpr int PAD = CHANNELS + 4; // floats of a row of results
    constexpr int SIZE = 2 * LOW > FRAMES * PAD * 4 ? 2 * LOW : FRAMES * PAD * 4;
    constexpr int GROUPS = TIME_CONV_THREADS / CHANNELS, COUNT = POOLED / GROUPS;
    static_assert(TIME_CONV_THREADS == 256 && CHANNELS == 4 * NT * 8 && FRAMES == 2 * MT * 16, "tiles.h");
    __shared__ uint4 memory[SIZE / 16];
    __shared__ float shared[GROUPS + 1][CHANNELS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, window = blockIdx.y;
    const u32 pooled = blockIdx.x * POOLED, frame = pooled * 3;

    const float4* x = (const float4*)p.x + (u64)window * p.frames_in * (WIDTH / 4);
    const float4* norm = (const float4*)p.norm + window * WIDTH;
    for (u32 i = threadIdx.x; i < ROWS * (WIDTH / 4); i += TIME_CONV_THREADS) {
        const u32 r = i / (WIDTH / 4), c = i % (WIDTH / 4);
        uint2 high = make_uint2(0, 0), low = high;
        if (frame + r < p.frames_in) normalised4(__ldg(x + (frame + r) * (WIDTH / 4) + c), norm + 4 * c, high, low);
        *(uint2*)((u8*)memory + r * PITCH + c * 8) = high;
        *(uint2*)((u8*)memory + LOW + r * PITCH + c * 8) = low;
    }
    __syncthreads();

    float acc[MT][NT][4] = {};
    uint4 next[NT];
    const u32 column = warp / 2 * (NT * 8);
    const uint4* w = (const uint4*)p.w + column / 8 * WARP + lane;
    auto fetch = [&](u32 step) {
#pragma unroll
        for (int n = 0; n < NT; n++) next[n] = load_weights(w + (step * (CHANNELS / 8) + n) * WARP);
    };
    fetch(0);
    const u32 base = shared_address(memory) + warp % 2 * (MT * 16) * PITCH + lane_offset<PITCH>(lane);
#pragma unroll 1
    for (u32 tap = 0; tap < TAPS; tap++)
#pragma unroll
        for (int k = 0; k < WIDTH / 16; k++) {
            uint4 b[NT];
#pragma unroll
            for (int n = 0; n < NT; n++) b[n] = next[n];
            const u32 step = tap * (WIDTH / 16) + k + 1;
            if (step < STEPS) fetch(step);
            multiply<MT, NT, PITCH, LOW>(acc, base + tap * PITCH + k * 32, b);
        }

    __syncthreads();
    float* results = (float*)memory;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        const u32 c = column + n * 8 + lane % 4 * 2;
        const float b0 = __ldg(p.bias + c), b1 = __ldg(p.bias + c + 1);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u32 r = warp % 2 * (MT * 16) + m * 16 + half * 8 + lane / 4;
                *(float2*)(results + r * PAD + c) =
                    make_float2(fmaf(acc[m][n][2 * half], UNSCALE, b0), fmaf(acc[m][n][2 * half + 1], UNSCALE, b1));
            }
    }
    __syncthreads();

    const u32 channel = threadIdx.x % CHANNELS, group = threadIdx.x / CHANNELS, frames = p.frames_out - pooled;
    float* out = p.out + ((u64)window * p.frames_out + pooled) * CHANNELS + channel;
    float v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const u32 f = group * COUNT + i;
        const float* r = results + 3 * f * PAD + channel;
        v[i] = fmaxf(fmaxf(r[0], r[PAD]), r[2 * PAD]);
        if (f < frames) out[f * CHANNELS] = v[i];
    }
    const u64 tile = (u64)window * gridDim.x + blockIdx.x;
    tile_statistics<GROUPS>(v, channel, group, frames, shared, p.partial + tile * CHANNELS * 2);
}

// Grid: (tiles of TIME_CONV_TILE pooled frames, windows).
extern "C" __global__ void __launch_bounds__(TIME_CONV_THREADS, 2) time_conv80(const __grid_constant__ TimeConvArgs p) { time_conv<80>(p); }
extern "C" __global__ void __launch_bounds__(TIME_CONV_THREADS, 2) time_conv60(const __grid_constant__ TimeConvArgs p) { time_conv<64>(p); }

// The input of the LSTM. One thread per 4 channels.
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) normalise_split(const __grid_constant__ SplitArgs p) {
    constexpr int UNITS = TIME_CONV_CHANNELS / 4;
    const u32 i = blockIdx.x * SPLIT_THREADS + threadIdx.x, row = i / UNITS, c = i % UNITS;
    if (row >= p.batch * p.frames) return;
    uint2 high, low;
    normalised4(__ldg((const float4*)p.x + i), (const float4*)p.norm + (row / p.frames * UNITS + c) * 4, high, low);
    uint2* out = (uint2*)p.out + (u64)row * 2 * UNITS + c;
    out[0] = high;
    out[UNITS] = low;
}
