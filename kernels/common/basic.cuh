// What the kernels without tensor cores need of PTX, each instruction wrapped once.
#pragma once
#include "args.cuh"
#include "tiles.h"

// NaN and -0 pass.
__device__ inline float relu(float v) { return v < 0.0f ? 0.0f : v; }

// The same value, of which the compiler knows nothing: what is computed from it stays where it stands.
__device__ inline u32 opaque(u32 v) {
    asm volatile("" : "+r"(v));
    return v;
}

// --- copies of 16 bytes into shared memory -------------------------------------------------------------------------

// Stages that copies may fill ahead of their use: without asynchronous copies more blocks per SM hide the latency.
#if __CUDA_ARCH__ >= 800
constexpr int stages(int wanted) { return wanted; }
#else
constexpr int stages(int) { return 1; }
#endif

// Copies 16 bytes, or writes zeros where `valid` is false; only if `valid` must `src` be readable.
__device__ inline void copy16(uint4* dst, const uint4* src, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"((u32)__cvta_generic_to_shared(dst)), "l"(src), "r"(valid ? 16 : 0)
                 : "memory");
#else
    *dst = valid ? __ldg(src) : make_uint4(0, 0, 0, 0);
#endif
}

// Loads 16 bytes, or zeros where `valid` is false. Not a load of constants, which the assembler would move behind stores
// to its first use, so that a loop of loads waited for each one.
__device__ inline uint4 load16(const uint4* src, bool valid) {
    uint4 v = make_uint4(0, 0, 0, 0);
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(src), "r"((u32)valid)
                 : "memory");
    return v;
}

// Closes a group of copies.
__device__ inline void copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `PENDING` of this thread's groups are under way.
template <int PENDING>
__device__ inline void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Runs `use(stage)` for `steps` steps whose data `copy(step, stage)` brings into a ring of STAGES stages. Every thread of
// the block must come here with the same `steps`.
template <int STAGES, class Copy, class Use>
__device__ inline void pipeline(u32 steps, Copy copy, Use use) {
    if constexpr (STAGES == 1) {
#pragma unroll 1
        for (u32 step = 0; step < steps; step++) {
            __syncthreads(); // the step before is used up
            copy(step, 0);
            copies_commit();
            copies_wait<0>();
            __syncthreads();
            use(0);
        }
    } else {
#pragma unroll
        for (u32 step = 0; step < STAGES - 1; step++) {
            if (step < steps) copy(step, step);
            copies_commit();
        }
        u32 stage = 0, behind = STAGES - 1;
#pragma unroll 1
        for (u32 step = 0; step < steps; step++) {
            copies_wait<STAGES - 2>();
            __syncthreads(); // this step has come for every thread, and the step before is used up
            if (step + STAGES - 1 < steps) copy(step + STAGES - 1, behind);
            copies_commit(); // maybe empty, so that the count of groups stays the count of steps
            use(stage);
            behind = stage;
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
    }
}

// --- rounding ------------------------------------------------------------------------------------------------------

// Nearest TF32, ties away from zero; NaN and infinities stay.
#if __CUDA_ARCH__ >= 800
__device__ inline float to_tf32(float v) {
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return __uint_as_float(r);
}
#endif

// Nearest FP16, ties to even; what does not fit becomes an infinity.
__device__ inline u16 to_half(float v) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}

__device__ inline float from_half(u16 v) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
    return r;
}

// --- units of a map ------------------------------------------------------------------------------------------------

// The 4 FP32 or 8 FP16 channels of a unit.
template <int CHANNELS>
__device__ inline void unpack(float (&v)[CHANNELS], uint4 unit) {
    static_assert(CHANNELS == 4 || CHANNELS == 8, "FP32 or FP16");
    const u32 word[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (int i = 0; i < CHANNELS; i++)
        v[i] = CHANNELS == 4 ? __uint_as_float(word[i % 4]) : from_half((u16)(word[i / 2] >> i % 2 * 16));
}

template <int CHANNELS>
__device__ inline uint4 packed(const float (&v)[CHANNELS]) {
    static_assert(CHANNELS == 4 || CHANNELS == 8, "FP32 or FP16");
    u32 word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        if constexpr (CHANNELS == 4)
            word[i] = __float_as_uint(v[i]);
        else
            word[i] = to_half(v[2 * i]) | (u32)to_half(v[2 * i + 1]) << 16;
    return make_uint4(word[0], word[1], word[2], word[3]);
}
