// The end of segmentation-3.0 (C3, C4): two linear layers with leaky rectifiers, the classifier, log-softmax and the most
// probable class, in FP32. A block takes CLASSIFY_FRAMES frames, a thread one unit of a layer for all of them.
#include "common/basic.cuh"

constexpr int UNITS = CLASSIFY_THREADS, FRAMES = CLASSIFY_FRAMES, CLASSES = CLASSIFY_CLASSES;
constexpr int PITCH = FRAMES + 4;
constexpr float LEAK = 0.01f;

// Unit threadIdx.x of a layer from `x`, [inputs][PITCH], for all frames; then `x` holds the layer's output.
template <int INPUTS>
__device__ inline void layer(float (*x)[PITCH], const float* weights, const float* bias) {
    float sum[FRAMES];
    const float b = __ldg(bias + threadIdx.x);
#pragma unroll
    for (int f = 0; f < FRAMES; f++) sum[f] = b;
#pragma unroll 4
    for (int k = 0; k < INPUTS; k++) {
        const float w = __ldg(weights + k * UNITS + threadIdx.x);
#pragma unroll
        for (int f = 0; f < FRAMES; f += 4) {
            const float4 v = *(const float4*)&x[k][f];
            sum[f] = fmaf(w, v.x, sum[f]), sum[f + 1] = fmaf(w, v.y, sum[f + 1]);
            sum[f + 2] = fmaf(w, v.z, sum[f + 2]), sum[f + 3] = fmaf(w, v.w, sum[f + 3]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int f = 0; f < FRAMES; f++) x[threadIdx.x][f] = sum[f] < 0.0f ? LEAK * sum[f] : sum[f];
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(CLASSIFY_THREADS) classify(const __grid_constant__ ClassifyArgs p) {
    __shared__ __align__(16) float x[2 * UNITS][PITCH];
    __shared__ float scores[CLASSES][FRAMES];
    const u32 first = blockIdx.x * FRAMES;
    for (int i = threadIdx.x; i < 2 * UNITS / 4 * FRAMES; i += UNITS) {
        const u32 unit = i / FRAMES, f = i % FRAMES;
        const uint4 v = first + f < p.frames ? __ldg((const uint4*)p.in + (u64)unit * p.frames + first + f) : make_uint4(0, 0, 0, 0);
        float values[4];
        unpack(values, v);
#pragma unroll
        for (int j = 0; j < 4; j++) x[4 * unit + j][f] = values[j];
    }
    __syncthreads();
    layer<2 * UNITS>(x, p.weights0, p.bias0);
    layer<UNITS>(x, p.weights1, p.bias1);
    for (int i = threadIdx.x; i < CLASSES * FRAMES; i += UNITS) {
        const int c = i / FRAMES, f = i % FRAMES;
        float sum = __ldg(p.bias2 + c);
#pragma unroll 8
        for (int k = 0; k < UNITS; k++) sum = fmaf(__ldg(p.weights2 + c * UNITS + k), x[k][f], sum);
        scores[c][f] = sum;
    }
    __syncthreads();
    const u32 f = threadIdx.x;
    if (f >= FRAMES || first + f >= p.frames) return;
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        if (scores[c][f] > scores[best][f]) best = c; // the first of equals
    p.classes[first + f] = (u8)best;
    if (!p.scores) return;
    float sum = 0.0f;
    for (int c = 0; c < CLASSES; c++) sum += expf(scores[c][f] - scores[best][f]);
    for (int c = 0; c < CLASSES; c++) p.scores[(u64)(first + f) * CLASSES + c] = scores[c][f] - scores[best][f] - logf(sum);
}
