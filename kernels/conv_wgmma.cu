// architectures: sm_90a
// 3x3 convolutions at stride 1 for Hopper: warpgroup matrix products fed by the bulk copy engine.
//
// A block walks over tiles of ROWS x 64 pixels and NT output channels. One warp fetches: the tile of the input with its
// border (the copy engine writes zeros outside the map) and the weights, each through a ring of stages in shared
// memory. Two warpgroups multiply. A row of 64 pixels is the M of a product: its core matrices are 8 neighbouring pixels
// of one unit, so a shift by one pixel is a shift of the address by 16 bytes and the nine taps read one copy of the
// input.
#include "common/epilogue.cuh"
#include "common/wgmma.cuh"

#define TILE_COLS WGMMA_COLS

template <Math M_, int NT_, int RW_, bool SHARED_TILE_, int PAIRS_, int A_STAGES_, int W_STAGES_, int RESIDENT_PAIRS_, int STRIDE_,
          int LAG_>
struct Shape {
    static constexpr Math M = M_;
    static constexpr int NT = NT_;                            // output channels of a tile
    static constexpr int RW = RW_;                            // rows of a warpgroup
    static constexpr bool SHARED_TILE = SHARED_TILE_;         // both warpgroups work on one tile, else each on its own
    static constexpr int PAIRS = PAIRS_;                      // pairs of units in one stage of the input
    static constexpr int A_STAGES = A_STAGES_;
    static constexpr int W_STAGES = W_STAGES_;                // stages of the weights; 0: they stay in shared memory
    static constexpr int RESIDENT_PAIRS = RESIDENT_PAIRS_;    // pairs of units of the whole input, if they stay
    static constexpr int STRIDE = STRIDE_;
    static constexpr int LAG = LAG_;                          // stages of weights that the second warpgroup starts behind

    static constexpr bool RESIDENT = W_STAGES == 0;
    static constexpr int PARTS = M == TF32X3 ? 2 : 1;         // high and low part of every operand
    static constexpr int ROWS = SHARED_TILE ? 2 * RW : RW;
    static constexpr int PHASES = STRIDE;                     // odd columns apart from even ones at stride 2
    static constexpr int LINE = (TILE_COLS + 3 - STRIDE) * UNIT_BYTES;
    static constexpr int LINES = STRIDE * (ROWS - 1) + 3;
    static constexpr int PLANE = LINES * LINE;                // one unit of the tile, one phase
    static constexpr int PHASE = (2 * PAIRS * PLANE + 127) / 128 * 128;
    static constexpr int A_PART = PHASES * PHASE;
    static constexpr int A_ARRIVES = PHASES * 2 * PAIRS * PLANE; // without the padding
    static constexpr int A_STAGE = PARTS * A_PART;
    static constexpr int W_SLICE = 2 * 3 * NT * UNIT_BYTES;   // a pair of units, one kx, three ky
    static constexpr int W_PART = RESIDENT ? RESIDENT_PAIRS * 3 * W_SLICE : W_SLICE;
    static constexpr int W_BYTES = PARTS * W_PART * (RESIDENT ? 1 : W_STAGES);
    static constexpr int SHARED = A_STAGES * A_STAGE + W_BYTES + 8 * (2 * A_STAGES + 2 * W_STAGES + 1);
    static constexpr int GROUP = RW * NT / 8 < 8 ? RW * NT / 8 : 8; // fragments stored together
    static constexpr int USERS = SHARED_TILE ? 8 : 4;         // warps that must release a stage of the input
    static_assert(W_SLICE % 128 == 0, "the copy engine writes at multiples of 128 bytes");
    static_assert(SHARED <= 232448, "shared memory of one block");
    static_assert(RESIDENT || PAIRS == 1, "a stage of weights belongs to one pair");
    static_assert(LAG == 0 || (SHARED_TILE && PARTS == 1 && LAG < W_STAGES && LAG < 3 * A_STAGES), "the rings must hold the lag");
};

// Where things are in shared memory.
template <class S>
struct Layout {
    u32 base;
    __device__ u32 a(int stage) const { return base + stage * S::A_STAGE; }
    __device__ u32 w(int stage) const { return base + S::A_STAGES * S::A_STAGE + stage * S::PARTS * S::W_PART; }
    __device__ u32 barriers() const { return base + S::A_STAGES * S::A_STAGE + S::W_BYTES; }
    __device__ u32 a_full(int s) const { return barriers() + 8 * s; }
    __device__ u32 a_free(int s) const { return barriers() + 8 * (S::A_STAGES + s); }
    __device__ u32 w_full(int s) const { return barriers() + 8 * (2 * S::A_STAGES + s); }
    __device__ u32 w_free(int s) const { return barriers() + 8 * (2 * S::A_STAGES + S::W_STAGES + s); }
};

// A position in a ring of N stages.
template <int N>
struct Ring {
    u32 stage = 0, phase = 0;
    __device__ void next() {
        if (++stage == N) stage = 0, phase ^= 1;
    }
};

struct Tile {
    u32 image, row, col, slice;
    template <class S>
    __device__ static Tile at(u32 t, const ConvArgs& p) {
        const u32 slices = p.cout / S::NT, cols = (p.w_out + TILE_COLS - 1) / TILE_COLS, rows = (p.h_out + S::ROWS - 1) / S::ROWS;
        Tile r;
        r.slice = t % slices, t /= slices;
        r.col = t % cols * TILE_COLS, t /= cols;
        r.row = t % rows * S::ROWS;
        r.image = t / rows;
        return r;
    }
    template <class S>
    __device__ static u32 count(const ConvArgs& p) {
        return p.cout / S::NT * ((p.w_out + TILE_COLS - 1) / TILE_COLS) * ((p.h_out + S::ROWS - 1) / S::ROWS) * p.batch;
    }
};

// Fills the rings, in the order in which the tiles are worked on.
template <class S>
__device__ void fetch(const ConvArgs& p, const TensorMap* map, Layout<S> at) {
    const u32 units = p.cin / UNIT<S::M>, stages = units / (2 * S::PAIRS), tiles = Tile::count<S>(p);
    const u32 low = p.cin / UNIT<S::M> * 9 * p.cout * UNIT_BYTES; // the low parts of all weights follow the high ones
    const char* weights = (const char*)p.w;
    if constexpr (S::RESIDENT) {
        barrier_expect(at.barriers() + 8 * 2 * S::A_STAGES, S::PARTS * S::W_PART);
        for (int part = 0; part < S::PARTS; part++)
            copy_bulk(at.w(0) + part * S::W_PART, weights + part * low, S::W_PART, at.barriers() + 8 * 2 * S::A_STAGES);
    }
    Ring<S::A_STAGES> a;
    Ring<S::RESIDENT ? 1 : S::W_STAGES> w;
    for (u32 t = blockIdx.x; t < tiles; t += gridDim.x) {
        const Tile tile = Tile::at<S>(t, p);
        for (u32 s = 0; s < stages; s++) {
            barrier_wait(at.a_free(a.stage), a.phase ^ 1);
            barrier_expect(at.a_full(a.stage), S::A_ARRIVES);
            const int col = S::STRIDE * tile.col - 1, row = S::STRIDE * tile.row - 1, plane = tile.image * units + s * 2 * S::PAIRS;
            if constexpr (S::STRIDE == 1) {
                copy_box(at.a(a.stage), map, at.a_full(a.stage), 2 * col, row, plane);
            } else {
                copy_box(at.a(a.stage), map, at.a_full(a.stage), 0, col, row, plane);
                copy_box(at.a(a.stage) + S::PHASE, map, at.a_full(a.stage), 0, col + 1, row, plane);
            }
            a.next();
            if constexpr (!S::RESIDENT) {
                for (int kx = 0; kx < 3; kx++) {
                    barrier_wait(at.w_free(w.stage), w.phase ^ 1);
                    barrier_expect(at.w_full(w.stage), S::PARTS * S::W_SLICE);
                    const char* from = weights + ((u64)(tile.slice * stages + s) * 3 + kx) * S::W_SLICE;
                    for (int part = 0; part < S::PARTS; part++)
                        copy_bulk(at.w(w.stage) + part * S::W_PART, from + part * (u64)low, S::W_SLICE, at.w_full(w.stage));
                    w.next();
                }
            }
        }
    }
}

// Splits a stage of the input into a high part in TF32, in place, and the rest, also in TF32.
template <class S>
__device__ void split(u32 a, u32 thread, u32 threads) {
    for (u32 i = thread * 16; i < S::A_PART; i += threads * 16) {
        float v[4];
        u32 h[4], l[4];
        asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(a + i));
#pragma unroll
        for (int k = 0; k < 4; k++) {
            h[k] = to_tf32(v[k]);
            // What is not finite stays in the high part alone: inf - inf would make a NaN of it.
            const float rest = v[k] - __uint_as_float(h[k]);
            l[k] = fabsf(v[k]) < 3.0e38f ? to_tf32(rest) : 0;
        }
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a + i), "r"(h[0]), "r"(h[1]), "r"(h[2]), "r"(h[3]) : "memory");
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a + S::A_PART + i), "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3])
                     : "memory");
    }
    async_proxy_fence();
    named_barrier(S::SHARED_TILE ? 1 : 1 + threadIdx.x / 128, threads);
}

// Products of one pair of units at one kx, from output row `row` of the tile on.
template <class S>
__device__ inline void multiply(float (&sum)[S::RW * S::NT / 2], u32 a, u32 w, u32 row, int kx) {
    const u32 first = S::STRIDE == 1 ? kx * UNIT_BYTES : kx % 2 * S::PHASE + kx / 2 * UNIT_BYTES;
    const u64 a0 = operand(a + S::STRIDE * row * S::LINE + first, S::PLANE, 128);
    const u64 w0 = operand(w, 3 * S::NT * UNIT_BYTES, 128);
#pragma unroll
    for (int o = 0; o < S::RW; o++)
#pragma unroll
        for (int slot = 0; slot < 3; slot++) // slot holds the weights of ky = 2 - slot
            wgmma<S::M == F16, S::NT>(sum + o * S::NT / 2, a0 + ((S::STRIDE * o + 2 - slot) * S::LINE >> 4),
                                      w0 + (slot * S::NT * UNIT_BYTES >> 4));
}

// The three products of 3xTF32, or the one of the other modes.
template <class S>
__device__ inline void multiply_parts(float (&sum)[S::RW * S::NT / 2], u32 a, u32 w, u32 row, int kx) {
    if constexpr (S::PARTS == 2) {
        multiply<S>(sum, a + S::A_PART, w, row, kx);
        multiply<S>(sum, a, w + S::W_PART, row, kx);
    }
    multiply<S>(sum, a, w, row, kx);
}

// Where fragment i of this warp goes: the fragments of one row side by side.
template <class S>
__device__ inline Place place(const Tile& tile, u32 first_row, int i) {
    constexpr int PER_ROW = S::NT / 8;
    return {tile.image, tile.slice * S::NT + i % PER_ROW * 8, tile.row + first_row + i / PER_ROW,
            tile.col + threadIdx.x % 128 / WARP * 16};
}

template <class S>
__device__ void consume(const ConvArgs& p, Layout<S> at, u32 group) {
    const u32 stages = p.cin / UNIT<S::M> / (2 * S::PAIRS), tiles = Tile::count<S>(p);
    const u32 row = S::SHARED_TILE ? group * S::RW : 0;
    const u32 thread = S::SHARED_TILE ? threadIdx.x : threadIdx.x % 128, threads = S::SHARED_TILE ? 256 : 128;
    const bool signals = threadIdx.x % WARP == 0;
    Ring<S::A_STAGES> a;
    Ring<S::RESIDENT ? 1 : S::W_STAGES> w;
    if constexpr (S::RESIDENT) barrier_wait(at.barriers() + 8 * 2 * S::A_STAGES, 0);
    u32 turn = 0;
    // Behind the first warpgroup, the second multiplies while the first stores, and the other way round.
    if (S::LAG && group == 1 && blockIdx.x < tiles) named_barrier(8, 256);
    for (u32 t = blockIdx.x; t < tiles; t += gridDim.x, turn++) {
        if (!S::SHARED_TILE && turn % 2 != group) {
            for (u32 s = 0; s < stages; s++) a.next();
            continue;
        }
        float sum[S::RW * S::NT / 2];
#pragma unroll
        for (int i = 0; i < S::RW * S::NT / 2; i++) sum[i] = 0.0f;
        const Tile tile = Tile::at<S>(t, p);
        const auto place_of = [&](int i) { return place<S>(tile, row, i); };
        Piece<S::M> ahead[S::GROUP];
        // The warpgroups take turns: while one multiplies, the other stores. It also keeps the ring's parity sound, as a
        // stage that one waits for may not lie a whole turn of the ring ahead of what has arrived.
        if (!S::SHARED_TILE && turn > 0) named_barrier(8 + group, 256);
        int held_a = -1, held_w = -1; // stages that the products under way still read
        barrier_wait(at.a_full(a.stage), a.phase);
        if constexpr (S::PARTS == 2) split<S>(at.a(a.stage), thread, threads);
        for (u32 s = 0; s < stages; s++) {
            const u32 stage = a.stage;
            if constexpr (S::RESIDENT) {
                wgmma_fence();
#pragma unroll
                for (int pair = 0; pair < S::PAIRS; pair++)
#pragma unroll
                    for (int kx = 0; kx < 3; kx++)
                        multiply_parts<S>(sum, at.a(stage) + pair * 2 * S::PLANE,
                                          at.w(0) + ((s * S::PAIRS + pair) * 3 + kx) * S::W_SLICE, row, kx);
                wgmma_commit();
                wgmma_wait<1>();
                if (signals && held_a >= 0) barrier_arrive(at.a_free(held_a));
            } else {
#pragma unroll
                for (int kx = 0; kx < 3; kx++) {
                    barrier_wait(at.w_full(w.stage), w.phase);
                    wgmma_fence();
                    multiply_parts<S>(sum, at.a(stage), at.w(w.stage), row, kx);
                    wgmma_commit();
                    wgmma_wait<1>();
                    if (signals && held_w >= 0) barrier_arrive(at.w_free(held_w));
                    if (signals && kx == 0 && held_a >= 0) barrier_arrive(at.a_free(held_a));
                    held_w = w.stage;
                    w.next();
                    if (S::LAG && group == 0 && turn == 0 && s * 3 + kx + 1 == S::LAG) named_barrier_arrive(8, 256);
                }
            }
            held_a = stage;
            a.next();
            if (s + 1 < stages) {
                barrier_wait(at.a_full(a.stage), a.phase);
                if constexpr (S::PARTS == 2) split<S>(at.a(a.stage), thread, threads);
            }
        }
        if (!S::SHARED_TILE && t + gridDim.x < tiles) named_barrier_arrive(9 - group, 256);
        begin_fragments<S::M, S::GROUP>(p, place_of, ahead);
        wgmma_wait<0>();
        if (signals) {
            barrier_arrive(at.a_free(held_a));
            if (!S::RESIDENT) barrier_arrive(at.w_free(held_w));
        }
        finish_fragments<S::M, S::RW * S::NT / 8, S::GROUP>(
            p, place_of, [&](int i) -> const float(&)[4] { return *(const float(*)[4])(sum + 4 * i); }, ahead);
    }
}

template <class S>
__device__ inline void convolve(const ConvArgs& p, const TensorMap& map) {
    extern __shared__ __align__(128) char memory[];
    const Layout<S> at{shared_address(memory)};
    if (threadIdx.x == 0) {
        for (int s = 0; s < S::A_STAGES; s++) barrier_init(at.a_full(s), 1), barrier_init(at.a_free(s), S::USERS);
        for (int s = 0; s < S::W_STAGES; s++) barrier_init(at.w_full(s), 1), barrier_init(at.w_free(s), 8);
        if (S::RESIDENT) barrier_init(at.barriers() + 8 * 2 * S::A_STAGES, 1);
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 256) {
        registers_give<40>();
        if (threadIdx.x == 256) fetch<S>(p, &map, at);
    } else {
        registers_take<232>();
        consume<S>(p, at, threadIdx.x / 128);
    }
}

#define ENTRY(NAME, ...)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                     \
        NAME(const __grid_constant__ ConvArgs p, const __grid_constant__ TensorMap map) {                                    \
        typedef Shape<__VA_ARGS__> S;                                                                                        \
        static_assert(S::SHARED <= NAME##_SHARED && S::ROWS == NAME##_ROWS && S::NT == NAME##_NT, "tiles.h");                \
        convolve<S>(p, map);                                                                                                 \
    }

//                           math    NT   RW shared pairs A  W  resident pairs, stride, lag
ENTRY(wgmma_tf32_c32, TF32, 32, 4, false, 4, 3, 0, 4, 1, 0)
ENTRY(wgmma_tf32_c64, TF32, 64, 4, false, 2, 3, 0, 8, 1, 0)
ENTRY(wgmma_tf32_n128, TF32, 128, 2, true, 1, 5, 8, 0, 1, 0)
ENTRY(wgmma_tf32_n256, TF32, 256, 1, true, 1, 6, 6, 0, 1, 0)
ENTRY(wgmma_tf32_n64_small, TF32, 64, 1, true, 1, 8, 8, 0, 1, 0)
ENTRY(wgmma_tf32_n32_small, TF32, 32, 1, true, 1, 8, 8, 0, 1, 0)
ENTRY(wgmma_f16_c32, F16, 32, 4, false, 2, 6, 0, 2, 1, 0)
ENTRY(wgmma_f16_c64, F16, 64, 4, false, 2, 5, 0, 4, 1, 0)
ENTRY(wgmma_f16_n128, F16, 128, 2, true, 1, 5, 8, 0, 1, 0)
ENTRY(wgmma_f16_n256, F16, 256, 1, true, 1, 6, 6, 0, 1, 0)
ENTRY(wgmma_f16_n64_small, F16, 64, 1, true, 1, 8, 8, 0, 1, 0)
ENTRY(wgmma_f16_n32_small, F16, 32, 1, true, 1, 8, 8, 0, 1, 0)
ENTRY(wgmma_tf32x3_c32, TF32X3, 32, 4, false, 2, 3, 0, 4, 1, 0)
ENTRY(wgmma_tf32x3_n64, TF32X3, 64, 4, true, 1, 3, 6, 0, 1, 0)
ENTRY(wgmma_tf32x3_n128, TF32X3, 128, 2, true, 1, 3, 5, 0, 1, 0)
ENTRY(wgmma_tf32x3_n64_small, TF32X3, 64, 1, true, 1, 5, 6, 0, 1, 0)
ENTRY(wgmma_f16_s2_c32, F16, 64, 4, false, 1, 5, 0, 2, 2, 0)
ENTRY(wgmma_f16_s2_n128, F16, 128, 2, true, 1, 3, 8, 0, 2, 0)
ENTRY(wgmma_f16_s2_n64_small, F16, 64, 1, true, 1, 5, 8, 0, 2, 0)
ENTRY(wgmma_tf32_s2_c32, TF32, 64, 4, false, 1, 4, 0, 4, 2, 0)
ENTRY(wgmma_tf32_s2_n128, TF32, 128, 2, true, 1, 3, 8, 0, 2, 0)
ENTRY(wgmma_tf32_s2_n64_small, TF32, 64, 1, true, 1, 5, 8, 0, 2, 0)
ENTRY(wgmma_tf32x3_s2_n64, TF32X3, 64, 2, true, 1, 2, 6, 0, 2, 0)
ENTRY(wgmma_tf32x3_s2_n128, TF32X3, 128, 2, true, 1, 2, 3, 0, 2, 0)
ENTRY(wgmma_tf32x3_s2_n64_small, TF32X3, 64, 1, true, 1, 3, 6, 0, 2, 0)
