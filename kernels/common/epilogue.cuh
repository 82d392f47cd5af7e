// What happens to a finished sum: bias, residual, ReLU, store. Both tensor families end here, because wgmma and
// mma.sync leave their sums in the same fragment: 16 neighbouring pixels x 8 channels, of which lane l holds channels
// 2 (l mod 4), + 1 of pixels l / 4 (v[0], v[1]) and l / 4 + 8 (v[2], v[3]).
#pragma once
#include "ptx.cuh"

enum Math { TF32 = 0, F16 = 1, TF32X3 = 2 };

// Channels of one 16-byte unit.
template <Math M>
constexpr int UNIT = M == F16 ? 8 : 4;

// NaN and -0 pass.
__device__ inline float relu(float v) { return v < 0.0f ? 0.0f : v; }

// Where a fragment goes: first of its 8 channels, row, first of its 16 pixels.
struct Place {
    u32 image, channel, row, pixel;
};

// What a lane reads and writes of a fragment: FP32 maps, one whole unit of one pixel; FP16 maps, two channels of both
// its pixels.
template <Math M>
struct Piece {
    u32 word[M == F16 ? 2 : 4];
};

// The lane's first word in the map, counted in units for FP32 and in pairs of channels for FP16.
template <Math M>
__device__ inline u64 piece_at(const ConvArgs& p, const Place& f, u32 col) {
    const u32 lane = threadIdx.x % WARP;
    const u32 unit = M == F16 ? f.channel / 8 : f.channel / 4 + lane % 4 / 2;
    const u64 at = (((u64)f.image * (p.cout / UNIT<M>) + unit) * p.h_out + f.row) * p.w_out + col;
    return M == F16 ? at * 4 + lane % 4 : at;
}

// Reads the lane's piece of the residual, zeros outside the map. Apart from `store_piece`, so that many loads are under
// way before the first store.
template <Math M>
__device__ inline Piece<M> load_residual(const ConvArgs& p, const Place& f) {
    const u32 lane = threadIdx.x % WARP;
    Piece<M> r = {};
    if constexpr (M == F16) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 col = f.pixel + lane / 4 + 8 * half;
            if (col < p.w_out && f.row < p.h_out) r.word[half] = __ldg((const u32*)p.residual + piece_at<M>(p, f, col));
        }
    } else {
        const u32 col = f.pixel + lane / 4 + lane % 2 * 8;
        if (col < p.w_out && f.row < p.h_out) {
            const uint4 v = __ldg((const uint4*)p.residual + piece_at<M>(p, f, col));
            r.word[0] = v.x, r.word[1] = v.y, r.word[2] = v.z, r.word[3] = v.w;
        }
    }
    return r;
}

// Stores a fragment; `residual` must hold zeros if there is none.
template <Math M>
__device__ inline void store_piece(const ConvArgs& p, const Place& f, const float (&v)[4], float2 bias, const Piece<M>& residual) {
    const u32 lane = threadIdx.x % WARP;
    if constexpr (M == F16) {
        bool overflow = false;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 col = f.pixel + lane / 4 + 8 * half;
            float a = v[2 * half] + bias.x, b = v[2 * half + 1] + bias.y;
            if (p.residual) a += half_low(residual.word[half]), b += half_high(residual.word[half]);
            if (p.relu) a = relu(a), b = relu(b);
            if (col < p.w_out && f.row < p.h_out) {
                overflow |= fabsf(a) > FP16_MAX || fabsf(b) > FP16_MAX;
                ((u32*)p.y)[piece_at<M>(p, f, col)] = to_half2(a, b);
            }
        }
        if (overflow) *p.overflow = 1;
    } else {
        // Neighbouring lanes swap halves so that each holds a whole unit: the even lane the first pixel's, the odd
        // lane the second's.
        const bool odd = lane & 1;
        const float c[4] = {v[0] + bias.x, v[1] + bias.y, v[2] + bias.x, v[3] + bias.y};
        const float s0 = __shfl_xor_sync(0xffffffff, odd ? c[0] : c[2], 1);
        const float s1 = __shfl_xor_sync(0xffffffff, odd ? c[1] : c[3], 1);
        float o[4] = {odd ? s0 : c[0], odd ? s1 : c[1], odd ? c[2] : s0, odd ? c[3] : s1};
        const u32 col = f.pixel + lane / 4 + (odd ? 8 : 0);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (p.residual) o[i] += __uint_as_float(residual.word[i]);
            if (p.relu) o[i] = relu(o[i]);
        }
        if (col < p.w_out && f.row < p.h_out)
            ((float4*)p.y)[piece_at<M>(p, f, col)] = make_float4(o[0], o[1], o[2], o[3]);
    }
}

// Finishes COUNT fragments, GROUP at a time: `place(i)` says where fragment i goes, `sum(i)` its values. The residuals of
// a group are under way while the group before is stored.
template <Math M, int COUNT, int GROUP, class PlaceOf, class SumOf>
__device__ inline void finish_fragments(const ConvArgs& p, PlaceOf place, SumOf sum, Piece<M> (&ahead)[GROUP]) {
    static_assert(COUNT % GROUP == 0, "whole groups");
    const u32 lane = threadIdx.x % WARP;
#pragma unroll
    for (int g = 0; g < COUNT; g += GROUP) {
        Piece<M> now[GROUP];
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            now[i] = ahead[i];
            if (g + GROUP < COUNT && p.residual) ahead[i] = load_residual<M>(p, place(g + GROUP + i));
        }
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            const Place f = place(g + i);
            store_piece<M>(p, f, sum(g + i), __ldg((const float2*)(p.bias + f.channel) + lane % 4), now[i]);
        }
    }
}

// The residuals of the first group.
template <Math M, int GROUP, class PlaceOf>
__device__ inline void begin_fragments(const ConvArgs& p, PlaceOf place, Piece<M> (&ahead)[GROUP]) {
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        ahead[i] = Piece<M>{};
        if (p.residual) ahead[i] = load_residual<M>(p, place(i));
    }
}

// Two neighbouring channels of a pixel in shared memory.
template <Math M>
__device__ inline float2 load_pair(u32 from) {
    if constexpr (M == F16) {
        const u32 v = load_shared(from);
        return make_float2(half_low(v), half_high(v));
    } else {
        return load_shared2(from);
    }
}

template <Math M>
__device__ inline void store_pair(u32 to, float2 v) {
    if constexpr (M == F16)
        store_shared(to, to_half2(v.x, v.y));
    else
        store_shared2(to, v);
}
