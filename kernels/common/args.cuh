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

// --- segmentation --------------------------------------------------------------------------------------------------

// Normalisation of the waveform of every window as scale and shift.
struct WaveArgs {
    const float* samples;
    u64 count;             // samples of the recording
    u64 first;             // first sample of the first window
    u64 step;              // samples between windows
    float* norm;           // [batch][2]
    float gamma;
    float beta;
};

// Sinc filters over segments of a recording.
struct SincFilterArgs {
    const float* samples;
    u64 count;             // samples of the recording
    u64 first;             // first sample of the first segment
    u64 step;              // samples between segments
    const float* filters;  // [SINC_TAPS_PADDED][80], zeros after the last tap
    float* out;            // [segments][outputs][80]
    u32 outputs;
    u32 padding;
};

// Absolute value and maximum over 3 of the filters, for every window.
struct SincPoolArgs {
    const float* filtered; // [..][80]
    const float* norm;     // [batch][2] of the waveform
    const float* sums;     // [80] sum of the taps of each filter
    float* out;            // [batch][SINC_FRAMES][80]
    float* partial;        // [batch][tiles][80][2] mean and squared deviations
    u64 first;             // first output of the first window
    u64 step;              // outputs between windows
};

// Instance normalisation from partial statistics.
struct NormArgs {
    const float* partial;  // [batch][tiles][width][2]
    const float* gamma;    // [channels]
    const float* beta;
    float* norm;           // [batch][width][4] mean, scale, shift, 0
    u32 frames;
    u32 tile;              // frames of a tile
    u32 channels;
    u32 width;             // channels with padding, at most 128
};

// Normalisation, leaky rectifier, convolution over 5 frames, maximum over 3.
struct TimeConvArgs {
    const float* x;        // [batch][frames_in][80 or 64]
    const float* norm;     // [batch][80 or 64][4]
    const void* w;         // split and packed, 64 columns
    const float* bias;     // [64]
    float* out;            // [batch][frames_out][64]
    float* partial;        // [batch][tiles][64][2]
    u32 frames_in;
    u32 frames_out;
};

// Normalisation, leaky rectifier, splitting into two FP16.
struct SplitArgs {
    const float* x;        // [batch][frames][64]
    const float* norm;     // [batch][64][4]
    void* out;             // [batch][frames][2][64]
    u32 frames;
    u32 batch;
};

// Input projections of both directions.
struct ProjectArgs {
    const void* x;         // [rows][2][width] split
    const void* w;         // split and packed, 1024 columns: direction, unit, gate
    const float* bias;     // [1024]
    float* out;            // [rows][1024]
    u32 rows;
    u32 width;             // 64 or 256
};

// Recurrence of both directions of one layer.
struct LstmArgs {
    const float* projected; // [batch][steps][1024]
    const void* w;          // [2] packed recurrent weights
    void* out;              // [batch][steps][2][256] split
    u32 batch;
    u32 steps;
};

// Linear layers and classifier.
struct ClassifyArgs {
    const void* x;          // [rows][2][256] split
    const void* w1;         // split and packed, 128 columns
    const float* bias1;
    const void* w2;         // split and packed, 128 columns
    const float* bias2;
    const float* w3;        // [7][128]
    const float* bias3;
    float* log_probabilities; // [rows][7], or null
    u8* classes;            // [rows]
    u32 rows;
    u32 padding;
};

// Weights [rows][channels][taps] into fragments of columns first .. first + rows, inputs in the order tap, channel.
struct SplitPackArgs {
    const float* w;
    const float* bias;      // [rows]
    void* packed;
    float* packed_bias;     // [columns]
    u32 rows;
    u32 channels;
    u32 taps;
    u32 width;              // channels with padding; taps * width is a multiple of 16
    u32 columns;            // of the whole matrix, a multiple of 8
    u32 first;
    u32 count;              // columns to write, those from `rows` on with zeros
    u32 gates;              // 1: rows are gate, unit and columns unit, gate
};

// Recurrent weights [512][128] of one direction into fragments.
struct RecurrentPackArgs {
    const float* w;
    void* packed;           // 256 KB
};
