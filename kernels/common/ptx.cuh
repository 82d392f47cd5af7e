// The PTX instructions of the tensor kernels, each wrapped once.
#pragma once
#include "args.cuh"
#include "tiles.h"

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// The same value, which all lanes of the warp must hold; the compiler then knows that branches on it do not diverge.
__device__ inline u32 uniform(u32 v) { return __shfl_sync(0xffffffff, v, 0); }

// --- copies of 16 bytes into shared memory -------------------------------------------------------------------------

// Copies 16 bytes, or writes zeros where `valid` is false; `src` must be readable memory only if `valid`.
__device__ inline void copy16(u32 dst, const void* src, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(valid ? 16 : 0) : "memory");
#else
    u32 a = 0, b = 0, c = 0, d = 0;
    if (valid) asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(src));
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(dst), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
#endif
}

__device__ inline void copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `PENDING` of this thread's groups of copies are under way.
template <int PENDING>
__device__ inline void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// --- shared memory by address ---------------------------------------------------------------------------------------

__device__ inline u32 load_shared(u32 from) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
    return v;
}

__device__ inline float2 load_shared2(u32 from) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from) : "memory");
    return v;
}

__device__ inline void store_shared(u32 to, u32 v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory"); }

__device__ inline void store_shared2(u32 to, float2 v) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(v.x), "f"(v.y) : "memory");
}

// --- rounding ------------------------------------------------------------------------------------------------------

// Nearest TF32, ties away from zero; NaN and infinities stay.
__device__ inline u32 to_tf32(float v) {
#if __CUDA_ARCH__ >= 800
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
#else
    return __float_as_uint(v);
#endif
}

// Two FP16 in one word, `low` in the lower half; what does not fit becomes an infinity.
__device__ inline u32 to_half2(float low, float high) {
    u16 a, b;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(a) : "f"(low));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(high));
    return (u32)a | ((u32)b << 16);
}

__device__ inline float half_low(u32 v) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)(v & 0xffff)));
    return r;
}

__device__ inline float half_high(u32 v) { return half_low(v >> 16); }

// --- warp-level matrix products ------------------------------------------------------------------------------------

// Four 8 x 16-byte matrices; lanes 8 i .. 8 i + 7 give the rows of matrix i.
__device__ inline void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// d += a b: 16 pixels x 8 channels over 8 input channels in TF32.
__device__ inline void mma_tf32(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// d += a b: 16 pixels x 8 channels over 16 input channels in FP16, sums in FP32.
__device__ inline void mma_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
