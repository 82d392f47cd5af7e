// Log-mel features on the device (C6, C17; src/features/fbank.rs has the same formulas): the energies of every frame, then
// the means that a window or a block of the shared trunk takes away.
#include "common/basic.cuh"

constexpr int FFT = FBANK_FFT, FRAME = FBANK_FRAME, MELS = FBANK_MELS;
constexpr int PARTS = FBANK_FEATURE_THREADS / MELS;
static_assert(PARTS * MELS == FBANK_FEATURE_THREADS, "tiles.h");

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

// One frame a block: scale, removal of the mean, pre-emphasis, window, Fourier transform, mel energies, logarithm.
extern "C" __global__ void __launch_bounds__(FBANK_THREADS) log_mel(const __grid_constant__ LogMelArgs p) {
    __shared__ float2 spectrum[2][FFT];
    __shared__ float frame[FRAME];
    const u64 start = (u64)p.first + (u64)blockIdx.x * p.shift;
    double sum = 0;
    for (int i = threadIdx.x; i < FRAME; i += FBANK_THREADS) {
        const float v = start + i < p.samples_count ? __ldg(p.samples + start + i) : 0.0f;
        frame[i] = v;
        sum += v;
    }
    const float mean = (float)(block_sum<FBANK_THREADS>(sum) / FRAME) * 32768.0f;
    for (int i = threadIdx.x; i < FFT; i += FBANK_THREADS) {
        float v = 0.0f;
        if (i < FRAME) {
            const float centred = frame[i] * 32768.0f - mean, previous = frame[i > 0 ? i - 1 : 0] * 32768.0f - mean;
            v = (centred - 0.97f * previous) * __ldg(p.window + i);
        }
        spectrum[0][i] = make_float2(v, 0.0f);
    }
    // Stockham's transform: each step reads one half of the memory and writes the other, in order at the end.
    int from = 0;
    for (int span = 1; span < FFT; span *= 2, from ^= 1) {
        __syncthreads();
        for (int i = threadIdx.x; i < FFT / 2; i += FBANK_THREADS) {
            const int at = i % span, group = i / span;
            const float2 a = spectrum[from][i], b = spectrum[from][i + FFT / 2];
            const float2 w = __ldg((const float2*)p.roots + at * (FFT / 2 / span));
            const float2 turned = make_float2(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
            const int to = group * 2 * span + at;
            spectrum[from ^ 1][to] = make_float2(a.x + turned.x, a.y + turned.y);
            spectrum[from ^ 1][to + span] = make_float2(a.x - turned.x, a.y - turned.y);
        }
    }
    __syncthreads();
    for (int mel = threadIdx.x; mel < MELS; mel += FBANK_THREADS) {
        const u32 first = __ldg(p.filters + 3 * mel), count = __ldg(p.filters + 3 * mel + 1), at = __ldg(p.filters + 3 * mel + 2);
        float energy = 0.0f;
        for (u32 i = 0; i < count; i++) {
            const float2 c = spectrum[from][first + i];
            energy += __ldg(p.weights + at + i) * (c.x * c.x + c.y * c.y);
        }
        p.out[(u64)blockIdx.x * MELS + mel] = logf(fmaxf(energy, p.floor));
    }
}

// Sum over rows [begin, end) of a bin, by all parts of the block; the same for every thread of the bin.
__device__ inline double bin_sum(const float* rows, u32 begin, u32 end) {
    __shared__ double sums[PARTS][MELS];
    const u32 mel = threadIdx.x % MELS, part = threadIdx.x / MELS;
    double sum = 0;
#pragma unroll 4
    for (u32 row = begin + part; row < end; row += PARTS) sum += __ldg(rows + (u64)row * MELS + mel);
    sums[part][mel] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < PARTS; i++) sum += sums[i][mel];
    return sum;
}

// One window a block: its frames less each bin's mean over them.
extern "C" __global__ void __launch_bounds__(FBANK_FEATURE_THREADS)
    window_features(const __grid_constant__ FeatureArgs p) {
    const u32 first = p.starts[blockIdx.x], mel = threadIdx.x % MELS;
    const float* rows = p.log_mel + (u64)first * MELS;
    const float mean = (float)(bin_sum(rows, 0, p.rows) / p.rows);
    float* out = p.out + (u64)blockIdx.x * p.rows * MELS;
    for (u32 row = threadIdx.x / MELS; row < p.rows; row += PARTS)
        out[(u64)row * MELS + mel] = __ldg(rows + (u64)row * MELS + mel) - mean;
}

// FBANK_SLIDING_ROWS rows of a block of the shared trunk: each less the mean over `span` rows centred on it, which is
// moved inwards at the ends of the recording.
extern "C" __global__ void __launch_bounds__(FBANK_FEATURE_THREADS)
    sliding_features(const __grid_constant__ FeatureArgs p) {
    const u32 begin = blockIdx.x * FBANK_SLIDING_ROWS, start = p.starts[blockIdx.y], mel = threadIdx.x % MELS;
    const u32 end = min(begin + FBANK_SLIDING_ROWS, p.rows), span = min(p.span, p.total);
    const auto first_of = [&](u32 row) { return min(row > span / 2 ? row - span / 2 : 0, p.total - span); };
    u32 at = first_of(start + begin);
    double sum = bin_sum(p.log_mel, at, at + span);
    if (threadIdx.x >= MELS) return;
    float* out = p.out + (u64)blockIdx.y * p.rows * MELS;
    for (u32 row = begin; row < end; row++) {
        if (at < first_of(start + row)) {
            sum -= __ldg(p.log_mel + (u64)at * MELS + mel);
            sum += __ldg(p.log_mel + (u64)(at + span) * MELS + mel);
            at++;
        }
        out[(u64)row * MELS + mel] = __ldg(p.log_mel + (u64)(start + row) * MELS + mel) - (float)(sum / span);
    }
}
