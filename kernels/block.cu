// architectures: sm_90a
// A whole basic block of 32 channels for Hopper: two 3x3 convolutions at stride 1 and the shortcut. The map between them
// stays in shared memory, so that the block reads its input once and writes its output once.
//
// A warpgroup walks down a strip of 62 output columns, one row a step. A row of the input, 64 pixels of the hidden map
// wide, adds to three hidden rows: one product over 3 x 32 channels at each kx, whose sums are the three rows side by
// side. The finished row goes to shared memory and from there in the same way to three rows of the output. Sums that are
// finished start again at zero, so the rows take turns at the three places; the weights of ky = 2, 1, 0, 2, 1 lie one
// after the other, and every turn finds its order among them.
#include "common/epilogue.cuh"
#include "common/wgmma.cuh"

template <Math M_, int GROUPS_, int RING_, bool KEEPS_>
struct Shape {
    static constexpr Math M = M_;
    static constexpr int GROUPS = GROUPS_;                     // warpgroups
    static constexpr int RING = RING_;                         // rows of the input, those on their way among them
    static constexpr bool KEEPS = KEEPS_;                      // rows stay three steps longer, until they are the residual
    static constexpr int UNITS = 32 / UNIT<M>;
    static constexpr int COLS = WGMMA_COLS - 2;                // output columns
    static constexpr int X_PLANE = (WGMMA_COLS + 2) * UNIT_BYTES;
    static constexpr int X_ROW = UNITS * X_PLANE;
    static constexpr int HIDDEN_PLANE = (WGMMA_COLS + 4) * UNIT_BYTES; // two pixels too many are read; two against bank conflicts
    static constexpr int HIDDEN_ROW = UNITS * HIDDEN_PLANE;
    static constexpr int SLOT = 32 * UNIT_BYTES;
    static constexpr int W_UNIT = 5 * SLOT;                    // one unit, one kx
    static constexpr int W = UNITS * 3 * W_UNIT;               // one convolution
    static constexpr int GROUP_BYTES = RING * X_ROW + 2 * HIDDEN_ROW;
    static constexpr int BIAS = 2 * W + GROUPS * GROUP_BYTES;
    static constexpr int BARRIERS = BIAS + 2 * 32 * 4;
    static constexpr int SHARED = BARRIERS + 8 * (1 + GROUPS * RING);
    static_assert(COLS == BLOCK_COLS, "tiles.h");
    static_assert(SHARED <= 232448, "shared memory of one block");
    static_assert(X_ROW % 128 == 0, "the copy engine writes at multiples of 128 bytes");
};

// The steps of one warpgroup: its share of all rows of all strips, one strip after the other. A strip takes five steps
// more than it has rows.
template <class S>
struct Walk {
    u32 at, end, image, col, row, rows, step;
    __device__ Walk(const BlockArgs& p, u32 worker, u32 workers) {
        const u64 all = (u64)p.batch * strips(p) * p.height;
        at = all * worker / workers;
        end = all * (worker + 1) / workers;
        begin(p);
    }
    __device__ static u32 strips(const BlockArgs& p) { return (p.width + S::COLS - 1) / S::COLS; }
    __device__ void begin(const BlockArgs& p) {
        const u32 strip = at / p.height;
        image = strip / strips(p), col = strip % strips(p) * S::COLS;
        row = at % p.height;
        rows = min(p.height - row, end - at);
        step = 0;
    }
    __device__ bool done() const { return at >= end; }
    __device__ void next(const BlockArgs& p) {
        if (++step < rows + 5) return;
        at += rows;
        begin(p);
    }
};

// Bytes from a lane's first channels in a row to those of fragment i, of the first or the second of its pixels.
template <class S>
__device__ inline u64 at(int i, int half, u64 plane) { return 8 * half * UNIT_BYTES + 8 / UNIT<S::M> * i * plane; }

// Two neighbouring channels of a pixel: what a lane holds of a fragment.
template <class S>
__device__ inline float2 load_pair(const void* from) {
    if constexpr (S::M == F16) {
        const u32 v = *(const u32*)from;
        return make_float2(half_low(v), half_high(v));
    } else {
        return *(const float2*)from;
    }
}

template <class S>
__device__ inline void store_pair(void* to, float2 v) {
    if constexpr (S::M == F16)
        *(u32*)to = to_half2(v.x, v.y);
    else
        *(float2*)to = v;
}

// Adds the products of one row to the three rows of sums, of which the one at place K gets its last.
template <class S, int K>
__device__ inline void multiply(float (&sum)[48], u32 row, u32 plane, u32 weights) {
    const u64 a = operand(row, plane, 128), w = operand(weights + (3 - K) % 3 * S::SLOT, S::W_UNIT, 128);
#pragma unroll
    for (int pair = 0; pair < S::UNITS / 2; pair++)
#pragma unroll
        for (int kx = 0; kx < 3; kx++)
            wgmma<S::M == F16, 96>(sum, a + ((2 * pair * plane + kx * UNIT_BYTES) >> 4),
                                   w + ((pair * 3 + kx) * 2 * S::W_UNIT >> 4));
    wgmma_commit();
}

template <class S>
struct Worker {
    const BlockArgs& p;
    const TensorMap* map;
    char* memory;   // of the block
    char* own;      // of this warpgroup: rows of the input, then two hidden rows
    u32 group;
    u32 barriers;   // of the rows of the input
    Walk<S> now, ahead;
    u32 slot = 0, phase = 0, load_slot = 0, hidden = 0;
    float first[48] = {}, second[48] = {};
    bool overflow = false;

    __device__ Worker(const BlockArgs& p, const TensorMap* map, char* memory, u32 group, u32 worker, u32 workers)
        : p(p), map(map), memory(memory), own(memory + 2 * S::W + group * S::GROUP_BYTES), group(group),
          barriers(shared_address(memory) + S::BARRIERS + 8 * (1 + group * S::RING)), now(p, worker, workers), ahead(now) {}

    // Fetches the next row of the input.
    __device__ void load() {
        if (ahead.done()) return;
        if (threadIdx.x % 128 == 0) {
            barrier_expect(barriers + 8 * load_slot, S::X_ROW);
            copy_box(shared_address(own) + load_slot * S::X_ROW, map, barriers + 8 * load_slot, 2 * ((int)ahead.col - 2),
                     (int)(ahead.row + ahead.step) - 2, ahead.image * S::UNITS);
        }
        load_slot = load_slot + 1 == S::RING ? 0 : load_slot + 1;
        ahead.next(p);
    }

    // Bytes from a pixel of a row to the lane's channels.
    __device__ static u64 channels(u64 plane) {
        const u32 channel = threadIdx.x % 4 * 2;
        return channel / UNIT<S::M> * plane + channel % UNIT<S::M> * (UNIT_BYTES / UNIT<S::M>);
    }

    __device__ void load_bias(float2 (&bias)[4], int layer) const {
#pragma unroll
        for (int i = 0; i < 4; i++) bias[i] = ((const float2*)(memory + S::BIAS))[layer * 16 + 4 * i + threadIdx.x % 4];
    }

    __device__ void check(float2 v) {
        if (S::M == F16) overflow |= fabsf(v.x) > FP16_MAX || fabsf(v.y) > FP16_MAX;
    }

    // The first convolution with the next row of the input, the second with the hidden row of the step before.
    template <int K>
    __device__ void step() {
        constexpr int LAST = (K + 2) % 3; // of the step before
        const u32 base = shared_address(memory), hidden_at = shared_address(own) + S::RING * S::X_ROW;
        const u32 pixel = threadIdx.x % 128 / WARP * 16 + threadIdx.x % WARP / 4;
        // Rows are counted from 2 above the map, hidden columns from 1 to its left.
        const u32 row = now.row + now.step;
        const u64 plane = (u64)p.height * p.width * UNIT_BYTES;
        const u64 out = now.image * S::UNITS * plane + ((u64)(row - 5) * p.width + now.col + pixel) * UNIT_BYTES +
                        channels(plane);
        bool stores[2];
        float2 residual[8] = {};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            stores[half] = now.step >= 5 && pixel + 8 * half < S::COLS && now.col + pixel + 8 * half < p.width;
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (!S::KEEPS && stores[half])
                    residual[4 * half + i] = load_pair<S>((const char*)p.x + out + at<S>(i, half, plane));
        }
        barrier_wait(barriers + 8 * slot, phase);
        wgmma_fence();
        multiply<S, K>(first, shared_address(own) + slot * S::X_ROW, S::X_PLANE, base);
        multiply<S, LAST>(second, hidden_at + (hidden ^ 1) * S::HIDDEN_ROW, S::HIDDEN_PLANE, base + S::W);

        float2 bias[4];
        load_bias(bias, 0);
        wgmma_wait<1>();
        // What lies outside the map is the padding of the second convolution. The first two hidden rows of a strip lack rows
        // above; they reach only outputs that are not stored.
        const bool hidden_row = row - 3 < p.height && now.step >= 2;
        char* to = own + S::RING * S::X_ROW + hidden * S::HIDDEN_ROW + pixel * UNIT_BYTES + channels(S::HIDDEN_PLANE);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const bool inside = hidden_row && now.col + pixel + 8 * half - 1 < p.width;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float* sum = first + 16 * K + 4 * i + 2 * half;
                const float2 v = make_float2(inside ? relu(sum[0] + bias[i].x) : 0.0f, inside ? relu(sum[1] + bias[i].y) : 0.0f);
                check(v);
                store_pair<S>(to + at<S>(i, half, S::HIDDEN_PLANE), v);
            }
        }
#pragma unroll
        for (int i = 0; i < 16; i++) first[16 * K + i] = 0.0f;
        async_proxy_fence();

        load_bias(bias, 1);
        if (S::KEEPS) {
            const u32 kept = slot >= 3 ? slot - 3 : slot + S::RING - 3;
            const char* x = own + kept * S::X_ROW + (pixel + 2) * UNIT_BYTES + channels(S::X_PLANE);
#pragma unroll
            for (int i = 0; i < 8; i++) residual[i] = load_pair<S>(x + at<S>(i % 4, i / 4, S::X_PLANE));
        }
        wgmma_wait<0>();
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float2 b = bias[i], r = residual[4 * half + i];
                const float* sum = second + 16 * LAST + 4 * i + 2 * half;
                const float2 v = make_float2(relu(sum[0] + b.x + r.x), relu(sum[1] + b.y + r.y));
                if (stores[half]) {
                    check(v);
                    store_pair<S>((char*)p.y + out + at<S>(i, half, plane), v);
                }
            }
#pragma unroll
        for (int i = 0; i < 16; i++) second[16 * LAST + i] = 0.0f;
        named_barrier(1 + group, 128);
        load(); // into the row that nothing needs any more
        hidden ^= 1;
        if (++slot == S::RING) slot = 0, phase ^= 1;
        now.next(p);
    }

    __device__ void run() {
        for (int i = 0; i < S::RING - (S::KEEPS ? 3 : 0); i++) load();
        while (!now.done()) {
            step<0>();
            if (now.done()) break;
            step<1>();
            if (now.done()) break;
            step<2>();
        }
        if (overflow) *p.overflow = 1;
    }
};

template <class S>
__device__ inline void block(const BlockArgs& p, const TensorMap& map) {
    extern __shared__ __align__(128) char memory[];
    const u32 base = shared_address(memory), loaded = base + S::BARRIERS;
    const u32 group = uniform(threadIdx.x / 128);
    if (threadIdx.x == 0) {
        for (int i = 0; i <= S::GROUPS * S::RING; i++) barrier_init(loaded + 8 * i, 1);
        barrier_init_fence();
        barrier_expect(loaded, 2 * S::W + 2 * 32 * 4);
        for (int layer = 0; layer < 2; layer++) {
            copy_bulk(base + S::BIAS + layer * 32 * 4, p.bias[layer], 32 * 4, loaded);
            for (int i = 0; i < 3 * S::UNITS; i++) {
                const char* from = (const char*)p.w[layer] + i * 3 * S::SLOT;
                const u32 to = base + layer * S::W + i * S::W_UNIT;
                copy_bulk(to, from, 3 * S::SLOT, loaded);
                copy_bulk(to + 3 * S::SLOT, from, 2 * S::SLOT, loaded);
            }
        }
    }
    __syncthreads();
    Worker<S> worker(p, &map, memory, group, group * gridDim.x + blockIdx.x, gridDim.x * S::GROUPS);
    barrier_wait(loaded, 0);
    worker.run();
}

#define ENTRY(NAME, ...)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(NAME##_THREADS, 1)                                                          \
        NAME(const __grid_constant__ BlockArgs p, const __grid_constant__ TensorMap map) {                                   \
        typedef Shape<__VA_ARGS__> S;                                                                                        \
        static_assert(S::SHARED <= NAME##_SHARED && 128 * S::GROUPS == NAME##_THREADS, "tiles.h");                           \
        block<S>(p, map);                                                                                                    \
    }

//                    math  warpgroups, ring, keeps
ENTRY(block_f16_c32, F16, 3, 9, true)
ENTRY(block_tf32_c32, TF32, 2, 4, false)
