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

// One window to pool. Its trunk frames are `count0` frames from unit `unit0` of the buffer on, in lines that are `pitch0`
// units apart, then the rest of POOL_FRAMES from `unit1` on: a window may straddle two blocks of the shared trunk.
struct PoolJob {
    u32 unit0;
    u32 pitch0;
    u32 count0;
    u32 unit1;
    u32 pitch1;
    u32 mask[3][4]; // 3 local speakers, one bit per trunk frame
};

struct PoolArgs {
    const void* maps;     // output of the trunk: maps of 256 channels
    const PoolJob* jobs;
    float* statistics;    // [jobs][3][2][256 * height]: mean then standard deviation, each channel-major
    u32 jobs_count;
    u32 height;
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

// Log-mel energies of frames that start `shift` samples apart, from sample `first` on; zeros behind the last sample.
struct LogMelArgs {
    const float* samples;
    const float* window;  // [FBANK_FRAME]
    const float* roots;   // [FBANK_FFT / 2][2]: e^(-2 pi i k / FBANK_FFT)
    const u32* filters;   // [FBANK_MELS][3]: first bin, number of bins, index of the first weight
    const float* weights;
    float* out;           // [frames][FBANK_MELS]
    u32 first;
    u32 shift;
    u32 samples_count;
    float floor;
};

// Features of windows or blocks: `rows` rows from row starts[i] of `log_mel` on, without a mean.
struct FeatureArgs {
    const float* log_mel; // [total][FBANK_MELS]
    const u32* starts;
    float* out;           // [windows][rows][FBANK_MELS]
    u32 rows;
    u32 span;             // rows of the sliding mean
    u32 total;
    u32 padding;
};

// What normalises the waveform of each window.
struct WaveArgs {
    const float* samples;
    const u32* starts;    // first sample of every window
    double* moments;      // [windows][2]: scale, shift
    u32 window;           // samples of a window
    u32 samples_count;
    float scale;          // learned
    float shift;
};

struct SincArgs {
    const float* samples;
    const float* filters; // [SINC_TAPS, padded to chunks][SINC_FILTERS]
    float* out;           // [rows][SINC_FILTERS][positions]
    u32 first;
    u32 row_step;
    u32 positions;
    u32 samples_count;
};

struct PoolNormArgs {
    const float* in;      // output of sinc_filter
    const u32* offsets;   // of every window's first value of filter 0
    const double* moments;
    const float* sums;    // of the taps of every filter
    const float* gain;
    const float* shift;
    float* out;           // [windows][SINC_FILTERS][SINC_POOLED]
    u64 pitch;            // from one filter to the next
};

struct TimeConvArgs {
    const float* in;      // [windows][inputs][length]
    const float* weights; // [inputs, padded to steps][5][64]
    const float* bias;
    float* out;           // [windows][channels][pooled]
    u32 inputs;
    u32 length;
    u32 channels;
    u32 pooled;
};

struct NormaliseArgs {
    float* x;             // [windows][channels][length]
    const float* gain;
    const float* shift;
    float* map;           // [channels / 4][windows * length][4]
    u32 channels;
    u32 length;
};

struct LstmArgs {
    const float* projected; // map [2 * LSTM_HIDDEN][windows * frames][4]: the gates of a unit are one unit of the map
    const float* weights;   // [2][LSTM_HIDDEN][LSTM_THREADS]
    float* out;             // map [2 * LSTM_HIDDEN / 4][windows * frames][4]
    u32 windows;
    u32 frames;
};

struct ClassifyArgs {
    const float* in;        // map [64][frames][4]
    const float* weights0;  // [256][128]
    const float* bias0;
    const float* weights1;  // [128][128]
    const float* bias1;
    const float* weights2;  // [CLASSIFY_CLASSES][128]
    const float* bias2;
    u8* classes;            // [frames]
    float* scores;          // [frames][CLASSIFY_CLASSES], or null
    u32 frames;
    u32 padding;
};
