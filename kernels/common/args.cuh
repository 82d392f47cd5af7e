// Arguments of the kernels, passed by value. `src/backend/cuda/launch.rs` holds the same structs; the order, the types
// and the padding must agree (a test compares the sizes that the cubins declare).
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A convolution with padding kernel / 2: y = act(conv(x) + bias [+ residual]).
//
// Maps are stored in units of 16 bytes: a unit holds consecutive channels of one pixel (4 of FP32, 8 of FP16), a map is
// [batch][channels / unit][height][width][unit]. Neighbouring pixels of a unit are 16 bytes apart, which is what
// asynchronous copies, ldmatrix and the core matrices of wgmma want.
struct ConvArgs {
    const void* x;        // input map
    const void* w;        // packed weights
    const float* bias;    // [cout]
    const void* residual; // map of the output's shape, or null
    void* y;              // output map
    u32* overflow;        // set to 1 when a value does not fit FP16; null if the output is FP32
    u32 batch;
    u32 cin;
    u32 cout;
    u32 h_in;
    u32 w_in;
    u32 h_out;
    u32 w_out;
    u32 relu;             // 1: v < 0 ? 0 : v (NaN and -0 pass), 0: none
};

// A basic block without shortcut convolution: y = relu(conv(relu(conv(x) + bias[0])) + bias[1] + x), both 3x3 at stride 1.
struct BlockArgs {
    const void* x;        // input map; its tensor map is an argument of its own
    const void* w[2];     // packed weights
    const float* bias[2];
    void* y;              // output map
    u32* overflow;        // as in ConvArgs
    u32 batch;
    u32 height;
    u32 width;
    u32 padding;
};

// One window to pool. Its trunk frames are `count0` frames of map `map0` from frame `first0`, then the rest of
// POOL_FRAMES from frame `first1` of map `map1`: a window may straddle two blocks of the shared trunk.
struct PoolJob {
    u32 map0;
    u32 first0;
    u32 count0;
    u32 map1;
    u32 first1;
    u32 mask[3][4]; // 3 local speakers, one bit per trunk frame
};

struct PoolArgs {
    const void* maps;     // output of the trunk: maps of 256 channels
    const PoolJob* jobs;
    float* statistics;    // [jobs][3][2][256 * height]: mean then standard deviation, each channel-major
    u32 jobs_count;
    u32 height;
    u32 width;
    u32 padding;
};

// out[row] = w * in[row] + bias
struct DenseArgs {
    const float* in;      // [rows][inputs]
    const float* w;       // [outputs][inputs]
    const float* bias;    // [outputs]
    float* partial;       // [splits][rows][outputs]
    float* out;           // [rows][outputs]
    u32 rows;
    u32 inputs;
    u32 outputs;
    u32 splits;
};

struct PackArgs {
    const float* w;       // [cout][cin][kernel][kernel]
    void* packed;
    u32 cin;
    u32 cout;
    u32 kernel;
    u32 tile;             // output channels of one tile
};
