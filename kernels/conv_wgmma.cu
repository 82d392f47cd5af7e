// architectures: sm_90a
// 3x3 convolutions at stride 1 and 2 for Hopper: warpgroup matrix products fed by the bulk copy engine.
//
// A block walks over tiles of ROWS x 64 pixels and NT output channels. One warp fetches: the tile of the input with its
// border (the copy engine writes zeros outside the map) and the weights, each through a ring of stages in shared
// memory. Two warpgroups multiply. A row of 64 pixels is the M of a product: its core matrices are 8 neighbouring pixels
// of one unit, so a shift by one pixel is a shift of the address by 16 bytes and the nine taps read one copy of the
// input.
//
// A product whose core matrices do not start at multiples of 128 bytes takes as long to read 64 pixels as to multiply
// them with 64 channels. With few channels, or several products of the same pixels as in 3xTF32, warps therefore load
// the pixels into registers, once for all products. So they do at stride 2, where no core matrix holds every other pixel.
//
// Residuals arrive in shared memory while the products are under way, and outputs leave it while those of the next tile
// are, both by the copy engine, a row of a unit at a time.
#include "common/epilogue.cuh"
#include "common/wgmma.cuh"

#define TILE_COLS WGMMA_COLS

template <Math M_, int NT_, int RW_, bool SHARED_TILE_, int PAIRS_, int A_STAGES_, int W_STAGES_, int RESIDENT_PAIRS_, int STRIDE_,
          bool STAGED_, bool LOADS_>
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

    static constexpr bool RESIDENT = W_STAGES == 0;
    static constexpr int PARTS = M == TF32X3 ? 2 : 1;         // high and low part of every operand
    static constexpr int ROWS = SHARED_TILE ? 2 * RW : RW;
    static constexpr bool STAGED = STAGED_;                   // residual and output pass through shared memory, in bulk
    static constexpr bool LOADS = LOADS_;                     // warps load the input into registers, else products read it
    static constexpr int BOXES = STRIDE;                      // halves of a line at stride 2, as a box holds 128 pixels
    static constexpr int LINE = (STRIDE == 1 ? TILE_COLS + 2 : TILE_COLS + 1) * UNIT_BYTES; // of one box
    static constexpr int LINES = STRIDE * (ROWS - 1) + 3;
    static constexpr int PLANE = LINES * LINE;                // one unit of a box
    static constexpr int BOX = (2 * PAIRS * PLANE + 127) / 128 * 128;
    static constexpr int A_STAGE = BOXES * BOX;
    static constexpr int W_SLICE = 2 * 3 * NT * UNIT_BYTES;   // a pair of units, one kx, three ky
    static constexpr int W_PART = RESIDENT ? RESIDENT_PAIRS * 3 * W_SLICE : W_SLICE;
    static constexpr int W_BYTES = PARTS * W_PART * (RESIDENT ? 1 : W_STAGES);
    // One unit of a staged tile: rows of 64 pixels, and what keeps neighbouring units of FP32 in different banks.
    static constexpr int OUT_PLANE = ROWS * TILE_COLS * UNIT_BYTES + (M == F16 ? 0 : 64);
    static constexpr int OUT_UNITS = NT / UNIT<M>;
    static constexpr int OUT_TILES = STAGED ? (SHARED_TILE ? 1 : 2) : 0;
    static constexpr int OUT_BYTES = OUT_TILES * OUT_UNITS * OUT_PLANE;
    static constexpr int SHARED = A_STAGES * A_STAGE + W_BYTES + OUT_BYTES + 8 * (2 * A_STAGES + 2 * W_STAGES + 1 + 2 * OUT_TILES);
    static constexpr int GROUP = RW * NT / 8 < 8 ? RW * NT / 8 : 8; // fragments stored together
    static constexpr int USERS = SHARED_TILE ? 8 : 4;         // warps that must release a stage of the input
    static_assert(W_SLICE % 128 == 0, "the copy engine writes at multiples of 128 bytes");
    static_assert(SHARED <= 232448, "shared memory of one block");
    static_assert(RESIDENT || PAIRS == 1, "a stage of weights belongs to one pair");
    static_assert(LOADS || (PARTS == 1 && STRIDE == 1), "what only registers allow");
    static_assert(!LOADS || SHARED_TILE, "warps load while those of the other warpgroup multiply");
};

// Where things are in shared memory.
template <class S>
struct Layout {
    u32 base;
    __device__ u32 a(int stage) const { return base + stage * S::A_STAGE; }
    __device__ u32 w(int stage) const { return base + S::A_STAGES * S::A_STAGE + stage * S::PARTS * S::W_PART; }
    __device__ u32 out(int tile) const { return base + S::A_STAGES * S::A_STAGE + S::W_BYTES + tile * S::OUT_UNITS * S::OUT_PLANE; }
    __device__ u32 barriers() const { return out(S::OUT_TILES); }
    __device__ u32 a_full(int s) const { return barriers() + 8 * s; }
    __device__ u32 a_free(int s) const { return barriers() + 8 * (S::A_STAGES + s); }
    __device__ u32 w_full(int s) const { return barriers() + 8 * (2 * S::A_STAGES + s); }
    __device__ u32 w_free(int s) const { return barriers() + 8 * (2 * S::A_STAGES + S::W_STAGES + s); }
    __device__ u32 out_ready(int t) const { return barriers() + 8 * (2 * S::A_STAGES + 2 * S::W_STAGES + 1 + t); }
    __device__ u32 out_done(int t) const { return out_ready(S::OUT_TILES + t); }
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
            barrier_expect(at.a_full(a.stage), S::BOXES * 2 * S::PAIRS * S::PLANE);
            const int col = (int)tile.col * S::STRIDE - 1, row = (int)tile.row * S::STRIDE - 1;
            for (int box = 0; box < S::BOXES; box++)
                copy_box(at.a(a.stage) + box * S::BOX, map, at.a_full(a.stage), 2 * (col + box * (TILE_COLS + 1)), row,
                         tile.image * units + s * 2 * S::PAIRS);
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

// The copies of one warp between the map and staged tile `out`: residuals before the sums are finished, outputs after.
template <class S>
__device__ void carry(const ConvArgs& p, Layout<S> at, u32 out) {
    const u32 tiles = Tile::count<S>(p), lane = threadIdx.x % WARP;
    u32 phase = 0;
    for (u32 t = blockIdx.x + out * gridDim.x; t < tiles; t += S::OUT_TILES * gridDim.x, phase ^= 1) {
        const Tile tile = Tile::at<S>(t, p);
        const u32 rows = min(p.h_out - tile.row, S::ROWS), bytes = min(p.w_out - tile.col, TILE_COLS) * UNIT_BYTES;
        // Every row of every unit: where it lies in the map, counted in bytes, and in shared memory.
        const auto each = [&](auto use) {
            for (u32 i = lane; i < S::OUT_UNITS * rows; i += WARP) {
                const u32 unit = i / rows, row = i % rows;
                const u64 plane = (u64)tile.image * (p.cout / UNIT<S::M>) + tile.slice * S::OUT_UNITS + unit;
                use(((plane * p.h_out + tile.row + row) * p.w_out + tile.col) * UNIT_BYTES,
                    at.out(out) + unit * S::OUT_PLANE + row * TILE_COLS * UNIT_BYTES);
            }
        };
        if (lane == 0) {
            if (p.residual)
                barrier_expect(at.out_ready(out), S::OUT_UNITS * rows * bytes);
            else
                barrier_arrive(at.out_ready(out));
        }
        __syncwarp();
        if (p.residual) each([&](u64 from, u32 to) { copy_bulk(to, (const char*)p.residual + from, bytes, at.out_ready(out)); });
        barrier_wait(at.out_done(out), phase);
        each([&](u64 to, u32 from) { store_bulk((char*)p.y + to, from, bytes); });
        bulk_commit();
        bulk_wait_read();
        __syncwarp();
    }
}

// Bias, residual and ReLU on the warpgroup's share of a staged tile.
template <class S>
__device__ inline void finish_staged(const ConvArgs& p, const Tile& tile, u32 out, u32 row, const float* sum) {
    // Whether the residuals of several fragments are loaded before the first is stored: faster for FP32, slower for FP16.
    constexpr bool AHEAD = S::M != F16 || S::STRIDE == 2;
    constexpr int TOGETHER = AHEAD ? 4 / S::RW : 1;
    const u32 lane = threadIdx.x % WARP, pixel = threadIdx.x % 128 / WARP * 16 + lane / 4;
    bool overflow = false;
#pragma unroll
    for (int first = 0; first < S::NT / 8; first += TOGETHER) {
        const auto place = [&](int i, int o, int half) {
            const u32 channel = 8 * i + lane % 4 * 2;
            return out + channel / UNIT<S::M> * S::OUT_PLANE + channel % UNIT<S::M> * (UNIT_BYTES / UNIT<S::M>) +
                   ((row + o) * TILE_COLS + pixel + 8 * half) * UNIT_BYTES;
        };
        const auto each = [&](auto use) {
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
#pragma unroll
                for (int o = 0; o < S::RW; o++)
#pragma unroll
                    for (int half = 0; half < 2; half++) use(first + i, o, half, (i * S::RW + o) * 2 + half);
        };
        float2 residual[2 * S::RW * TOGETHER] = {}, bias[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            bias[i] = __ldg((const float2*)(p.bias + tile.slice * S::NT + 8 * (first + i)) + lane % 4);
        if (AHEAD && p.residual) each([&](int i, int o, int half, int at) { residual[at] = load_pair<S::M>(place(i, o, half)); });
        each([&](int i, int o, int half, int at) {
            const float* v = sum + o * S::NT / 2 + 4 * i + 2 * half;
            float a = v[0] + bias[i - first].x, b = v[1] + bias[i - first].y;
            if (p.residual) {
                const float2 r = AHEAD ? residual[at] : load_pair<S::M>(place(i, o, half));
                a += r.x, b += r.y;
            }
            if (p.relu) a = relu(a), b = relu(b);
            if (S::M == F16 && tile.row + row + o < p.h_out && tile.col + pixel + 8 * half < p.w_out)
                overflow |= fabsf(a) > FP16_MAX || fabsf(b) > FP16_MAX;
            store_pair<S::M>(place(i, o, half), make_float2(a, b));
        });
    }
    if (overflow) *p.overflow = 1;
    async_proxy_fence();
}

// Products of one pair of units at one kx, from output row `row` of the tile on.
template <class S>
__device__ inline void multiply(float (&sum)[S::RW * S::NT / 2], u32 a, u32 w, u32 row, int kx) {
    const u64 a0 = operand(a + row * S::LINE + kx * UNIT_BYTES, S::PLANE, 128);
    const u64 w0 = operand(w, 3 * S::NT * UNIT_BYTES, 128);
#pragma unroll
    for (int o = 0; o < S::RW; o++)
#pragma unroll
        for (int slot = 0; slot < 3; slot++) // slot holds the weights of ky = 2 - slot
            wgmma<S::M == F16, S::NT>(sum + o * S::NT / 2, a0 + ((o + 2 - slot) * S::LINE >> 4),
                                      w0 + (slot * S::NT * UNIT_BYTES >> 4));
}

// The lane's part of one pair of units at one kx, for the output rows of its warpgroup: every row of the input once.
template <class S>
struct Fragments {
    static constexpr int COUNT = S::STRIDE * (S::RW - 1) + 3;
    u32 part[S::PARTS][COUNT][4];

    __device__ void load(u32 a, u32 row, int kx) {
        const u32 lane = threadIdx.x % WARP;
        u32 pixel = (threadIdx.x % 128 / WARP * 16 + lane % 16) * S::STRIDE + kx;
        if (S::BOXES == 2 && pixel > TILE_COLS) pixel -= TILE_COLS + 1, a += S::BOX;
        a += row * S::STRIDE * S::LINE + lane / 16 * S::PLANE + pixel * UNIT_BYTES;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            load_matrices(part[0][i], a + i * S::LINE);
            if constexpr (S::PARTS == 2) {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const float v = __uint_as_float(part[0][i][k]);
                    part[0][i][k] = to_tf32(v);
                    // What is not finite stays in the high part alone: inf - inf would make a NaN of it.
                    part[1][i][k] = fabsf(v) < 3.0e38f ? to_tf32(v - __uint_as_float(part[0][i][k])) : 0;
                }
            }
        }
    }

    // The products with the weights `w` of this kx; `part_a` and `part_w` of 3xTF32.
    __device__ void multiply(float (&sum)[S::RW * S::NT / 2], u32 w, int part_a, int part_w) const {
        const u64 w0 = operand(w + part_w * S::W_PART, 3 * S::NT * UNIT_BYTES, 128);
#pragma unroll
        for (int o = 0; o < S::RW; o++)
#pragma unroll
            for (int slot = 0; slot < 3; slot++) // as above
                wgmma<S::M == F16, S::NT>(sum + o * S::NT / 2, part[part_a][S::STRIDE * o + 2 - slot],
                                          w0 + (slot * S::NT * UNIT_BYTES >> 4));
    }
};

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
    const bool signals = threadIdx.x % WARP == 0;
    Ring<S::A_STAGES> a;
    Ring<S::RESIDENT ? 1 : S::W_STAGES> w;
    if constexpr (S::RESIDENT) barrier_wait(at.barriers() + 8 * 2 * S::A_STAGES, 0);
    u32 turn = 0, out_phase = 0;
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
        [[maybe_unused]] Piece<S::M> ahead[S::GROUP];
        // The warpgroups take turns: while one multiplies, the other stores. It also keeps the ring's parity sound, as a
        // stage that one waits for may not lie a whole turn of the ring ahead of what has arrived.
        if (!S::SHARED_TILE && turn > 0) named_barrier(8 + group, 256);
        int held_a = -1, held_w = -1; // stages that the products under way still read
        barrier_wait(at.a_full(a.stage), a.phase);
        for (u32 s = 0; s < stages; s++) {
            const u32 stage = a.stage;
            if constexpr (S::LOADS) {
#pragma unroll
                for (int i = 0; i < 3 * S::PAIRS; i++) {
                    const int pair = i / 3, kx = i % 3;
                    if (!S::RESIDENT) barrier_wait(at.w_full(w.stage), w.phase);
                    // With few registers in use, the compiler would otherwise take the products one by one.
                    if (S::RW == 1 && S::PARTS == 1) wgmma_wait<0>();
                    Fragments<S> f;
                    f.load(at.a(stage) + pair * 2 * S::PLANE, row, kx);
                    wgmma_wait<0>();
                    if (signals && !S::RESIDENT && held_w >= 0) barrier_arrive(at.w_free(held_w));
                    if (signals && i == 0 && held_a >= 0) barrier_arrive(at.a_free(held_a));
                    const u32 weights = S::RESIDENT ? at.w(0) + (s * 3 * S::PAIRS + i) * S::W_SLICE : at.w(w.stage);
                    wgmma_fence();
                    if (S::PARTS == 2) f.multiply(sum, weights, S::PARTS - 1, 0), f.multiply(sum, weights, 0, S::PARTS - 1);
                    f.multiply(sum, weights, 0, 0);
                    wgmma_commit();
                    held_w = w.stage;
                    w.next();
                }
            } else if constexpr (S::RESIDENT) {
                wgmma_fence();
#pragma unroll
                for (int pair = 0; pair < S::PAIRS; pair++)
#pragma unroll
                    for (int kx = 0; kx < 3; kx++)
                        multiply<S>(sum, at.a(stage) + pair * 2 * S::PLANE, at.w(0) + ((s * S::PAIRS + pair) * 3 + kx) * S::W_SLICE,
                                    row, kx);
                wgmma_commit();
                wgmma_wait<1>();
                if (signals && held_a >= 0) barrier_arrive(at.a_free(held_a));
            } else {
#pragma unroll
                for (int kx = 0; kx < 3; kx++) {
                    barrier_wait(at.w_full(w.stage), w.phase);
                    wgmma_fence();
                    multiply<S>(sum, at.a(stage), at.w(w.stage), row, kx);
                    wgmma_commit();
                    wgmma_wait<1>();
                    if (signals && held_w >= 0) barrier_arrive(at.w_free(held_w));
                    if (signals && kx == 0 && held_a >= 0) barrier_arrive(at.a_free(held_a));
                    held_w = w.stage;
                    w.next();
                }
            }
            held_a = stage;
            a.next();
            if (s + 1 < stages) barrier_wait(at.a_full(a.stage), a.phase);
        }
        if (!S::SHARED_TILE && t + gridDim.x < tiles) named_barrier_arrive(9 - group, 256);
        if constexpr (!S::STAGED) begin_fragments<S::M, S::GROUP>(p, place_of, ahead);
        wgmma_wait<0>();
        if (signals) {
            barrier_arrive(at.a_free(held_a));
            if (!S::RESIDENT) barrier_arrive(at.w_free(held_w));
        }
        if constexpr (S::STAGED) {
            const u32 out = S::SHARED_TILE ? 0 : group;
            barrier_wait(at.out_ready(out), out_phase);
            out_phase ^= 1;
            finish_staged<S>(p, tile, at.out(out), row, sum);
            __syncwarp();
            if (signals) barrier_arrive(at.out_done(out));
            continue;
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
        for (int t = 0; t < S::OUT_TILES; t++) barrier_init(at.out_ready(t), 1), barrier_init(at.out_done(t), S::USERS);
        if (S::RESIDENT) barrier_init(at.barriers() + 8 * 2 * S::A_STAGES, 1);
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 256) {
        registers_give<40>();
        const u32 warp = threadIdx.x / WARP - 8;
        if (threadIdx.x == 256) fetch<S>(p, &map, at);
        if (warp > 0 && warp <= S::OUT_TILES) carry<S>(p, at, warp - 1);
    } else {
        registers_take<232>();
        consume<S>(p, at, threadIdx.x / 128);
    }
}

#define ENTRY(NAME, ...)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(WGMMA_THREADS, 1)                                                                   \
        NAME(const __grid_constant__ ConvArgs p, const __grid_constant__ TensorMap map) {                                    \
        typedef Shape<__VA_ARGS__> S;                                                                                        \
        static_assert(S::SHARED <= NAME##_SHARED && S::ROWS == NAME##_ROWS && S::NT == NAME##_NT &&                          \
                          2 * S::PAIRS == NAME##_UNITS,                                                                      \
                      "tiles.h");                                                                                            \
        convolve<S>(p, map);                                                                                                 \
    }

//                           math    NT   RW shared pairs A  W  resident pairs, stride, staged, loads
ENTRY(wgmma_f16_c64, F16, 64, 4, false, 1, 7, 0, 4, 1, true, false)
ENTRY(wgmma_f16_n128, F16, 128, 2, true, 1, 4, 8, 0, 1, true, false)
ENTRY(wgmma_f16_n256, F16, 256, 1, true, 1, 4, 5, 0, 1, true, false)
ENTRY(wgmma_f16_n64_small, F16, 64, 1, true, 1, 8, 8, 0, 1, false, false)
ENTRY(wgmma_f16_n32_small, F16, 32, 1, true, 1, 8, 8, 0, 1, false, false)
ENTRY(wgmma_f16_s2_c32, F16, 64, 2, true, 1, 4, 0, 2, 2, true, true)
ENTRY(wgmma_f16_s2_n128, F16, 128, 1, true, 1, 4, 8, 0, 2, true, true)
ENTRY(wgmma_f16_s2_n64_small, F16, 64, 1, true, 1, 5, 8, 0, 2, false, true)
ENTRY(wgmma_tf32_c32, TF32, 32, 4, false, 4, 3, 0, 4, 1, false, false)
ENTRY(wgmma_tf32_c64, TF32, 64, 4, true, 1, 2, 7, 0, 1, true, true)
ENTRY(wgmma_tf32_n64, TF32, 64, 2, true, 1, 5, 14, 0, 1, true, true)
ENTRY(wgmma_tf32_n128, TF32, 128, 2, true, 1, 3, 4, 0, 1, true, false)
ENTRY(wgmma_tf32_n256, TF32, 256, 1, true, 1, 6, 6, 0, 1, false, false)
ENTRY(wgmma_tf32_n64_small, TF32, 64, 1, true, 1, 8, 8, 0, 1, false, false)
ENTRY(wgmma_tf32_n32_small, TF32, 32, 1, true, 1, 8, 8, 0, 1, false, false)
ENTRY(wgmma_tf32_s2_n64, TF32, 64, 2, true, 1, 3, 8, 0, 2, true, true)
ENTRY(wgmma_tf32_s2_n128, TF32, 128, 1, true, 1, 3, 8, 0, 2, true, true)
ENTRY(wgmma_tf32_s2_n64_small, TF32, 64, 1, true, 1, 5, 8, 0, 2, false, true)
ENTRY(wgmma_tf32x3_c32, TF32X3, 32, 2, true, 1, 6, 0, 4, 1, true, true)
ENTRY(wgmma_tf32x3_n64, TF32X3, 64, 2, true, 1, 4, 8, 0, 1, true, true)
ENTRY(wgmma_tf32x3_n128, TF32X3, 128, 1, true, 1, 4, 5, 0, 1, true, true)
ENTRY(wgmma_tf32x3_n64_small, TF32X3, 64, 1, true, 1, 8, 8, 0, 1, false, true)
ENTRY(wgmma_tf32x3_s2_n64, TF32X3, 64, 2, true, 1, 3, 4, 0, 2, true, true)
ENTRY(wgmma_tf32x3_s2_n128, TF32X3, 128, 1, true, 1, 3, 4, 0, 2, true, true)
ENTRY(wgmma_tf32x3_s2_n64_small, TF32X3, 64, 1, true, 1, 5, 8, 0, 2, false, true)
