// Sums over a block.
#pragma once
#include "tiles.h"

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
