// The convolutional front of segmentation-3.0 (C3; src/backend/cpu/sincnet.rs has the same formulas), in FP32.
//
// The normalisation of the waveform is affine, so it commutes with the sinc filters: they run once over the audio that
// windows share, and each window scales its slice.
#include "common/basic.cuh"

constexpr int FILTERS = SINC_FILTERS, TAPS = SINC_TAPS, STRIDE = SINC_STRIDE;
constexpr int CHUNK = SINC_CHUNK, CHUNKS = (TAPS + CHUNK - 1) / CHUNK;
constexpr int LANES = SINC_POSITIONS / WARP;               // positions of a thread
constexpr int OWN = FILTERS / (SINC_THREADS / WARP);       // filters of a warp
constexpr int PHASE = SINC_POSITIONS + (CHUNKS * CHUNK + STRIDE - 1) / STRIDE; // samples of one phase
constexpr float LEAK = 0.01f;
constexpr double NORM_EPSILON = 1e-5;
static_assert(OWN == 8 && OWN * (SINC_THREADS / WARP) == FILTERS, "a warp has the filters of two float4");

// Sum over the block of one value a thread, the same for every thread.
template <int THREADS>
__device__ inline double block_sum(double v) {
    __shared__ double sums[THREADS / WARP];
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
    __syncthreads(); // the sums of a call before are used up
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = v;
    __syncthreads();
    double sum = 0;
    for (int i = 0; i < THREADS / WARP; i++) sum += sums[i];
    return sum;
}

// Scale and shift that normalise the waveform of a window: one window a block.
extern "C" __global__ void __launch_bounds__(NORM_THREADS) wave_moments(const __grid_constant__ WaveArgs p) {
    const u64 start = p.starts[blockIdx.x], end = min(start + p.window, (u64)p.samples_count);
    double sum = 0;
    for (u64 i = start + threadIdx.x; i < end; i += NORM_THREADS) sum += __ldg(p.samples + i);
    const double mean = block_sum<NORM_THREADS>(sum) / p.window;
    sum = 0;
    for (u64 i = start + threadIdx.x; i < end; i += NORM_THREADS) {
        const double v = __ldg(p.samples + i) - mean;
        sum += v * v;
    }
    // Behind the recording's end the window holds zeros.
    const double silent = start + p.window > end ? (double)(start + p.window - max(start, end)) : 0;
    const double variance = (block_sum<NORM_THREADS>(sum) + silent * mean * mean) / p.window;
    if (threadIdx.x > 0) return;
    const double scale = p.scale / sqrt(variance + NORM_EPSILON);
    p.moments[2 * blockIdx.x] = scale;
    p.moments[2 * blockIdx.x + 1] = p.shift - mean * scale;
}

// out[row][filter][position] = sum of taps over samples from first + row * row_step + position * STRIDE on.
extern "C" __global__ void __launch_bounds__(SINC_THREADS) sinc_filter(const __grid_constant__ SincArgs p) {
    __shared__ float samples[STRIDE][PHASE | 1];
    __shared__ float4 filters[CHUNK][FILTERS / 4];
    const u32 position = blockIdx.x * SINC_POSITIONS, lane = threadIdx.x % WARP, group = threadIdx.x / WARP;
    const u64 start = (u64)p.first + (u64)blockIdx.y * p.row_step + (u64)position * STRIDE;
    // By phase, so that neighbouring positions read neighbouring words.
    for (int i = threadIdx.x; i < STRIDE * PHASE; i += SINC_THREADS)
        samples[i % STRIDE][i / STRIDE] = start + i < p.samples_count ? __ldg(p.samples + start + i) : 0.0f;
    float sum[OWN][LANES] = {};
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * FILTERS; i += SINC_THREADS) // padded to whole chunks
            ((float*)filters)[i] = __ldg(p.filters + chunk * CHUNK * FILTERS + i);
        __syncthreads();
#pragma unroll 9
        for (int tap = 0; tap < CHUNK; tap++) {
            const int j = chunk * CHUNK + tap;
            const float4 a = filters[tap][2 * group], b = filters[tap][2 * group + 1];
            const float w[OWN] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
            for (int n = 0; n < LANES; n++) {
                const float v = samples[j % STRIDE][j / STRIDE + lane + n * WARP];
#pragma unroll
                for (int c = 0; c < OWN; c++) sum[c][n] = fmaf(v, w[c], sum[c][n]);
            }
        }
    }
    float* out = p.out + ((u64)blockIdx.y * FILTERS + group * OWN) * p.positions + position;
#pragma unroll
    for (int n = 0; n < LANES; n++)
        if (position + lane + n * WARP < p.positions)
#pragma unroll
            for (int c = 0; c < OWN; c++) out[(u64)c * p.positions + lane + n * WARP] = sum[c][n];
}

// Instance normalisation of `values` and the leaky rectifier: scale and centre for every thread.
struct Normal {
    float mean, scale, shift;
    __device__ float of(float v) const {
        const float y = (v - mean) * scale + shift;
        return y < 0.0f ? LEAK * y : y;
    }
};

__device__ inline Normal normal_of(const float* values, u32 count, float gain, float shift) {
    double sum = 0;
    for (u32 i = threadIdx.x; i < count; i += NORM_THREADS) sum += values[i];
    const float mean = (float)(block_sum<NORM_THREADS>(sum) / count);
    sum = 0;
    for (u32 i = threadIdx.x; i < count; i += NORM_THREADS) {
        const float v = values[i] - mean;
        sum += v * v;
    }
    const double variance = block_sum<NORM_THREADS>(sum) / count;
    return Normal{mean, (float)(gain / sqrt(variance + NORM_EPSILON)), shift};
}

// One channel of one window a block: magnitude of the scaled filter output, maximum over 3, normalisation.
extern "C" __global__ void __launch_bounds__(NORM_THREADS) sinc_pool(const __grid_constant__ PoolNormArgs p) {
    __shared__ float values[SINC_POOLED];
    const u32 channel = blockIdx.x, window = blockIdx.y;
    const float scale = (float)p.moments[2 * window], shift = (float)(p.sums[channel] * p.moments[2 * window + 1]);
    const float* in = p.in + p.offsets[window] + (u64)channel * p.pitch;
    for (u32 i = threadIdx.x; i < SINC_POOLED; i += NORM_THREADS) {
        float v = 0.0f;
#pragma unroll
        for (int j = 0; j < 3; j++) v = fmaxf(v, fabsf(fmaf(__ldg(in + 3 * i + j), scale, shift)));
        values[i] = v;
    }
    __syncthreads();
    const Normal normal = normal_of(values, SINC_POOLED, p.gain[channel], p.shift[channel]);
    float* out = p.out + ((u64)window * FILTERS + channel) * SINC_POOLED;
    for (u32 i = threadIdx.x; i < SINC_POOLED; i += NORM_THREADS) out[i] = normal.of(values[i]);
}

// out[window][channel][position] = maximum over 3 of a convolution over time with 5 taps, plus bias. A block computes 64
// channels (of which p.channels count) at 32 positions, a thread 4 channels at 2 positions.
extern "C" __global__ void __launch_bounds__(TIME_CONV_THREADS) time_conv(const __grid_constant__ TimeConvArgs p) {
    constexpr int SPAN = 3 * TIME_CONV_POSITIONS + 4, PITCH = SPAN + 4 - SPAN % 4, STEP = TIME_CONV_STEP;
    __shared__ float2 in[STEP][PITCH / 2];
    __shared__ float4 weights[STEP][5][16];
    const u32 position = blockIdx.x * TIME_CONV_POSITIONS, window = blockIdx.y;
    const u32 own = threadIdx.x % 16, pair = threadIdx.x / 16;
    const float* source = p.in + (u64)window * p.inputs * p.length;
    float sum[4][6] = {};
#pragma unroll 1
    for (u32 first = 0; first < p.inputs; first += STEP) {
        __syncthreads();
        for (int i = threadIdx.x; i < STEP * SPAN; i += TIME_CONV_THREADS) {
            const u32 channel = first + i / SPAN, at = 3 * position + i % SPAN;
            const bool inside = at < p.length && channel < p.inputs;
            ((float*)in[i / SPAN])[i % SPAN] = inside ? __ldg(source + (u64)channel * p.length + at) : 0.0f;
        }
        for (int i = threadIdx.x; i < STEP * 5 * 16; i += TIME_CONV_THREADS) // padded to whole steps
            ((float4*)weights)[i] = __ldg((const float4*)p.weights + (u64)first * 5 * 16 + i);
        __syncthreads();
#pragma unroll
        for (int channel = 0; channel < STEP; channel++) {
            float x[10];
#pragma unroll
            for (int i = 0; i < 5; i++) {
                const float2 v = in[channel][3 * pair + i];
                x[2 * i] = v.x, x[2 * i + 1] = v.y;
            }
#pragma unroll
            for (int tap = 0; tap < 5; tap++) {
                const float4 w = weights[channel][tap][own];
#pragma unroll
                for (int i = 0; i < 6; i++) {
                    sum[0][i] = fmaf(x[i + tap], w.x, sum[0][i]), sum[1][i] = fmaf(x[i + tap], w.y, sum[1][i]);
                    sum[2][i] = fmaf(x[i + tap], w.z, sum[2][i]), sum[3][i] = fmaf(x[i + tap], w.w, sum[3][i]);
                }
            }
        }
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const u32 channel = 4 * own + c;
        if (channel >= p.channels) continue;
        const float bias = __ldg(p.bias + channel);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 at = position + 2 * pair + half;
            const float v = fmaxf(fmaxf(sum[c][3 * half], sum[c][3 * half + 1]), sum[c][3 * half + 2]) + bias;
            if (at < p.pooled) p.out[((u64)window * p.channels + channel) * p.pooled + at] = v;
        }
    }
}

// One channel of one window a block: normalisation and rectifier, in place.
extern "C" __global__ void __launch_bounds__(NORM_THREADS) normalise(const __grid_constant__ NormaliseArgs p) {
    __shared__ float values[NORM_LONGEST];
    const u32 channel = blockIdx.x, window = blockIdx.y;
    float* x = p.x + ((u64)window * p.channels + channel) * p.length;
    for (u32 i = threadIdx.x; i < p.length; i += NORM_THREADS) values[i] = x[i];
    __syncthreads();
    const Normal normal = normal_of(values, p.length, p.gain[channel], p.shift[channel]);
    for (u32 i = threadIdx.x; i < p.length; i += NORM_THREADS) x[i] = normal.of(values[i]);
}

// The same into a map [channels / 4][windows * length][4], whose channels beyond p.channels are 0.
extern "C" __global__ void __launch_bounds__(NORM_THREADS) normalise_to_map(const __grid_constant__ NormaliseArgs p) {
    __shared__ float values[NORM_LONGEST];
    const u32 channel = blockIdx.x, window = blockIdx.y;
    float* out = p.map + ((u64)(channel / 4) * gridDim.y * p.length + (u64)window * p.length) * 4 + channel % 4;
    if (channel >= p.channels) {
        for (u32 i = threadIdx.x; i < p.length; i += NORM_THREADS) out[4 * i] = 0.0f;
        return;
    }
    const float* x = p.x + ((u64)window * p.channels + channel) * p.length;
    for (u32 i = threadIdx.x; i < p.length; i += NORM_THREADS) values[i] = x[i];
    __syncthreads();
    const Normal normal = normal_of(values, p.length, p.gain[channel], p.shift[channel]);
    for (u32 i = threadIdx.x; i < p.length; i += NORM_THREADS) out[4 * i] = normal.of(values[i]);
}
