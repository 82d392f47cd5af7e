// Reorders the weights [cout][cin][kernel][kernel] of a convolution for its kernel, once per model. One thread per
// weight, in the packed order so that the stores are coalesced.
#include "common/basic.cuh"

// Where packed element `i` comes from.
struct Weight {
    u32 out, in, ky, kx;
};

__device__ inline float weight_at(const PackArgs& p, const Weight& w) {
    return p.w[((w.out * p.cin + w.in) * p.kernel + w.ky) * p.kernel + w.kx];
}

__device__ inline u32 thread_index() { return blockIdx.x * PACK_THREADS + threadIdx.x; }
__device__ inline u32 weights_count(const PackArgs& p) { return p.cout * p.cin * p.kernel * p.kernel; }

// [cout tile][cin / 4][ky][kx][4][tile]
extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_f32(const __grid_constant__ PackArgs p) {
    const u32 i = thread_index();
    if (i >= weights_count(p)) return;
    u32 rest = i;
    const auto digit = [&](u32 radix) {
        const u32 d = rest % radix;
        rest /= radix;
        return d;
    };
    Weight w;
    w.out = digit(p.tile);
    w.in = digit(4);
    w.kx = digit(p.kernel);
    w.ky = digit(p.kernel);
    w.in += digit(p.cin / 4) * 4;
    w.out += rest * p.tile;
    ((float*)p.packed)[i] = weight_at(p, w);
}

// [cout tile][pair of units][kx][unit of the pair][kernel - 1 - ky][tile][CHANNELS]: a pair of units is one step of a
// product on the tensor cores; the weights of a pair, and of one kx of it, are consecutive.
template <u32 CHANNELS>
__device__ inline Weight weight_of_unit(const PackArgs& p, u32 i) {
    u32 rest = i;
    const auto digit = [&](u32 radix) {
        const u32 d = rest % radix;
        rest /= radix;
        return d;
    };
    Weight w;
    w.in = digit(CHANNELS);
    w.out = digit(p.tile);
    w.ky = p.kernel - 1 - digit(p.kernel);
    w.in += digit(2) * CHANNELS;
    w.kx = digit(p.kernel);
    w.in += digit(p.cin / CHANNELS / 2) * 2 * CHANNELS;
    w.out += rest * p.tile;
    return w;
}

extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_units_f16(const __grid_constant__ PackArgs p) {
    const u32 i = thread_index();
    if (i < weights_count(p)) ((u16*)p.packed)[i] = to_half(weight_at(p, weight_of_unit<8>(p, i)));
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_units_tf32(const __grid_constant__ PackArgs p) {
    const u32 i = thread_index();
    if (i < weights_count(p)) ((float*)p.packed)[i] = to_tf32(weight_at(p, weight_of_unit<4>(p, i)));
}

// The rounded weights, then what rounding left of each.
extern "C" __global__ void __launch_bounds__(PACK_THREADS) pack_units_tf32x3(const __grid_constant__ PackArgs p) {
    const u32 i = thread_index(), count = weights_count(p);
    if (i >= count) return;
    const float w = weight_at(p, weight_of_unit<4>(p, i)), high = to_tf32(w);
    float* packed = (float*)p.packed;
    packed[i] = high;
    packed[(u64)count + i] = isfinite(high) ? to_tf32(w - high) : 0.0f; // inf - inf would make a NaN of an infinity
}
#endif
