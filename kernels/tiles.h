// Every constant that device and host code share: `#define NAME integer`, nothing else. The device code includes this
// file, `src/backend/cuda/tiles.rs` reads it at compile time.

// Warp and memory
#define WARP 32
#define UNIT_BYTES 16

// Statistics pooling
#define POOL_FRAMES 125
#define POOL_MASKS 3

// FP16
#define FP16_MAX 65504

// Hopper's convolutions: columns and threads of all, then channels and rows of a tile, units of the input that one stage
// holds, and bytes of shared memory for every entry
#define WGMMA_COLS 64
#define WGMMA_THREADS 384
#define wgmma_f16_c64_NT 64
#define wgmma_f16_c64_ROWS 4
#define wgmma_f16_c64_UNITS 2
#define wgmma_f16_c64_SHARED 228120
#define wgmma_f16_n128_NT 128
#define wgmma_f16_n128_ROWS 4
#define wgmma_f16_n128_UNITS 2
#define wgmma_f16_n128_SHARED 214744
#define wgmma_f16_n256_NT 256
#define wgmma_f16_n256_ROWS 2
#define wgmma_f16_n256_UNITS 2
#define wgmma_f16_n256_SHARED 222376
#define wgmma_f16_n64_small_NT 64
#define wgmma_f16_n64_small_ROWS 2
#define wgmma_f16_n64_small_UNITS 2
#define wgmma_f16_n64_small_SHARED 117000
#define wgmma_f16_n32_small_NT 32
#define wgmma_f16_n32_small_ROWS 2
#define wgmma_f16_n32_small_UNITS 2
#define wgmma_f16_n32_small_SHARED 92424
#define wgmma_f16_s2_c32_NT 64
#define wgmma_f16_s2_c32_ROWS 4
#define wgmma_f16_s2_c32_UNITS 2
#define wgmma_f16_s2_c32_SHARED 220248
#define wgmma_f16_s2_n128_NT 128
#define wgmma_f16_s2_n128_ROWS 2
#define wgmma_f16_s2_n128_UNITS 2
#define wgmma_f16_s2_n128_SHARED 215256
#define wgmma_f16_s2_n64_small_NT 64
#define wgmma_f16_s2_n64_small_ROWS 2
#define wgmma_f16_s2_n64_small_UNITS 2
#define wgmma_f16_s2_n64_small_SHARED 154328
#define wgmma_tf32_c32_NT 32
#define wgmma_tf32_c32_ROWS 4
#define wgmma_tf32_c32_UNITS 8
#define wgmma_tf32_c32_SHARED 188984
#define wgmma_tf32_c64_NT 64
#define wgmma_tf32_c64_ROWS 8
#define wgmma_tf32_c64_UNITS 2
#define wgmma_tf32_c64_SHARED 217512
#define wgmma_tf32_n64_NT 64
#define wgmma_tf32_n64_ROWS 4
#define wgmma_tf32_n64_UNITS 2
#define wgmma_tf32_n64_SHARED 216264
#define wgmma_tf32_n128_NT 128
#define wgmma_tf32_n128_ROWS 4
#define wgmma_tf32_n128_UNITS 2
#define wgmma_tf32_n128_SHARED 220424
#define wgmma_tf32_n256_NT 256
#define wgmma_tf32_n256_ROWS 2
#define wgmma_tf32_n256_UNITS 2
#define wgmma_tf32_n256_SHARED 198344
#define wgmma_tf32_n64_small_NT 64
#define wgmma_tf32_n64_small_ROWS 2
#define wgmma_tf32_n64_small_UNITS 2
#define wgmma_tf32_n64_small_SHARED 117000
#define wgmma_tf32_n32_small_NT 32
#define wgmma_tf32_n32_small_ROWS 2
#define wgmma_tf32_n32_small_UNITS 2
#define wgmma_tf32_n32_small_SHARED 92424
#define wgmma_tf32_s2_n64_NT 64
#define wgmma_tf32_s2_n64_ROWS 4
#define wgmma_tf32_s2_n64_UNITS 2
#define wgmma_tf32_s2_n64_SHARED 228808
#define wgmma_tf32_s2_n128_NT 128
#define wgmma_tf32_s2_n128_ROWS 2
#define wgmma_tf32_s2_n128_UNITS 2
#define wgmma_tf32_s2_n128_SHARED 229064
#define wgmma_tf32_s2_n64_small_NT 64
#define wgmma_tf32_s2_n64_small_ROWS 2
#define wgmma_tf32_s2_n64_small_UNITS 2
#define wgmma_tf32_s2_n64_small_SHARED 154328
#define wgmma_tf32x3_c32_NT 32
#define wgmma_tf32x3_c32_ROWS 4
#define wgmma_tf32x3_c32_UNITS 2
#define wgmma_tf32x3_c32_SHARED 183160
#define wgmma_tf32x3_n64_NT 64
#define wgmma_tf32x3_n64_ROWS 4
#define wgmma_tf32x3_n64_UNITS 2
#define wgmma_tf32x3_n64_SHARED 215768
#define wgmma_tf32x3_n128_NT 128
#define wgmma_tf32x3_n128_ROWS 2
#define wgmma_tf32x3_n128_UNITS 2
#define wgmma_tf32x3_n128_SHARED 224424
#define wgmma_tf32x3_n64_small_NT 64
#define wgmma_tf32x3_n64_small_ROWS 2
#define wgmma_tf32x3_n64_small_UNITS 2
#define wgmma_tf32x3_n64_small_SHARED 166152
#define wgmma_tf32x3_s2_n64_NT 64
#define wgmma_tf32x3_s2_n64_ROWS 4
#define wgmma_tf32x3_s2_n64_UNITS 2
#define wgmma_tf32x3_s2_n64_SHARED 228744
#define wgmma_tf32x3_s2_n128_NT 128
#define wgmma_tf32x3_s2_n128_ROWS 2
#define wgmma_tf32x3_s2_n128_UNITS 2
#define wgmma_tf32x3_s2_n128_SHARED 229000
#define wgmma_tf32x3_s2_n64_small_NT 64
#define wgmma_tf32x3_s2_n64_small_ROWS 2
#define wgmma_tf32x3_s2_n64_small_UNITS 2
#define wgmma_tf32x3_s2_n64_small_SHARED 203480

// Blocks of 32 channels for Hopper: output columns of a strip, threads, bytes of shared memory
#define BLOCK_COLS 62
#define block_f16_c32_THREADS 384
#define block_f16_c32_SHARED 202080
#define block_tf32_c32_THREADS 256
#define block_tf32_c32_SHARED 225608

// Convolutions on tensor cores: tile, threads, bytes of one stage and number of stages (one on 7.5) for every entry
#define mma_f16_n32_ROWS 4
#define mma_f16_n32_COLS 64
#define mma_f16_n32_NT 32
#define mma_f16_n32_THREADS 128
#define mma_f16_n32_BLOCKS 4
#define mma_f16_n32_STAGE 21888
#define mma_f16_n32_STAGES 3
#define mma_f16_n64_ROWS 4
#define mma_f16_n64_COLS 64
#define mma_f16_n64_NT 64
#define mma_f16_n64_THREADS 256
#define mma_f16_n64_BLOCKS 2
#define mma_f16_n64_STAGE 31104
#define mma_f16_n64_STAGES 3
#define mma_f16_n64_slim_ROWS 2
#define mma_f16_n64_slim_COLS 32
#define mma_f16_n64_slim_NT 64
#define mma_f16_n64_slim_THREADS 128
#define mma_f16_n64_slim_BLOCKS 4
#define mma_f16_n64_slim_STAGE 22784
#define mma_f16_n64_slim_STAGES 3
#define mma_f16_s2_n64_ROWS 4
#define mma_f16_s2_n64_COLS 32
#define mma_f16_s2_n64_NT 64
#define mma_f16_s2_n64_THREADS 256
#define mma_f16_s2_n64_BLOCKS 2
#define mma_f16_s2_n64_STAGE 37152
#define mma_f16_s2_n64_STAGES 2
#define mma_f16_s2_n64_slim_ROWS 2
#define mma_f16_s2_n64_slim_COLS 32
#define mma_f16_s2_n64_slim_NT 64
#define mma_f16_s2_n64_slim_THREADS 128
#define mma_f16_s2_n64_slim_BLOCKS 4
#define mma_f16_s2_n64_slim_STAGE 28832
#define mma_f16_s2_n64_slim_STAGES 2
#define mma_f16_1x1_n64_ROWS 4
#define mma_f16_1x1_n64_COLS 32
#define mma_f16_1x1_n64_NT 64
#define mma_f16_1x1_n64_THREADS 256
#define mma_f16_1x1_n64_BLOCKS 2
#define mma_f16_1x1_n64_STAGE 6144
#define mma_f16_1x1_n64_STAGES 3
#define mma_tf32_n32_ROWS 4
#define mma_tf32_n32_COLS 64
#define mma_tf32_n32_NT 32
#define mma_tf32_n32_THREADS 128
#define mma_tf32_n32_BLOCKS 4
#define mma_tf32_n32_STAGE 21888
#define mma_tf32_n32_STAGES 3
#define mma_tf32_n64_ROWS 4
#define mma_tf32_n64_COLS 64
#define mma_tf32_n64_NT 64
#define mma_tf32_n64_THREADS 256
#define mma_tf32_n64_BLOCKS 0
#define mma_tf32_n64_STAGE 31104
#define mma_tf32_n64_STAGES 3
#define mma_tf32_n64_slim_ROWS 2
#define mma_tf32_n64_slim_COLS 32
#define mma_tf32_n64_slim_NT 64
#define mma_tf32_n64_slim_THREADS 128
#define mma_tf32_n64_slim_BLOCKS 4
#define mma_tf32_n64_slim_STAGE 22784
#define mma_tf32_n64_slim_STAGES 3
#define mma_tf32_s2_n64_ROWS 4
#define mma_tf32_s2_n64_COLS 32
#define mma_tf32_s2_n64_NT 64
#define mma_tf32_s2_n64_THREADS 256
#define mma_tf32_s2_n64_BLOCKS 2
#define mma_tf32_s2_n64_STAGE 37152
#define mma_tf32_s2_n64_STAGES 2
#define mma_tf32_s2_n64_slim_ROWS 2
#define mma_tf32_s2_n64_slim_COLS 32
#define mma_tf32_s2_n64_slim_NT 64
#define mma_tf32_s2_n64_slim_THREADS 128
#define mma_tf32_s2_n64_slim_BLOCKS 4
#define mma_tf32_s2_n64_slim_STAGE 28832
#define mma_tf32_s2_n64_slim_STAGES 2
#define mma_tf32_1x1_n64_ROWS 4
#define mma_tf32_1x1_n64_COLS 32
#define mma_tf32_1x1_n64_NT 64
#define mma_tf32_1x1_n64_THREADS 256
#define mma_tf32_1x1_n64_BLOCKS 2
#define mma_tf32_1x1_n64_STAGE 6144
#define mma_tf32_1x1_n64_STAGES 3
#define mma_tf32x3_n32_ROWS 4
#define mma_tf32x3_n32_COLS 64
#define mma_tf32x3_n32_NT 32
#define mma_tf32x3_n32_THREADS 128
#define mma_tf32x3_n32_BLOCKS 0
#define mma_tf32x3_n32_STAGE 31104
#define mma_tf32x3_n32_STAGES 2
#define mma_tf32x3_n64_ROWS 4
#define mma_tf32x3_n64_COLS 64
#define mma_tf32x3_n64_NT 64
#define mma_tf32x3_n64_THREADS 256
#define mma_tf32x3_n64_BLOCKS 0
#define mma_tf32x3_n64_STAGE 49536
#define mma_tf32x3_n64_STAGES 2
#define mma_tf32x3_n64_slim_ROWS 2
#define mma_tf32x3_n64_slim_COLS 32
#define mma_tf32x3_n64_slim_NT 64
#define mma_tf32x3_n64_slim_THREADS 128
#define mma_tf32x3_n64_slim_BLOCKS 0
#define mma_tf32x3_n64_slim_STAGE 41216
#define mma_tf32x3_n64_slim_STAGES 2
#define mma_tf32x3_s2_n64_ROWS 4
#define mma_tf32x3_s2_n64_COLS 32
#define mma_tf32x3_s2_n64_NT 64
#define mma_tf32x3_s2_n64_THREADS 256
#define mma_tf32x3_s2_n64_BLOCKS 0
#define mma_tf32x3_s2_n64_STAGE 55584
#define mma_tf32x3_s2_n64_STAGES 1
#define mma_tf32x3_s2_n64_slim_ROWS 2
#define mma_tf32x3_s2_n64_slim_COLS 32
#define mma_tf32x3_s2_n64_slim_NT 64
#define mma_tf32x3_s2_n64_slim_THREADS 128
#define mma_tf32x3_s2_n64_slim_BLOCKS 0
#define mma_tf32x3_s2_n64_slim_STAGE 47264
#define mma_tf32x3_s2_n64_slim_STAGES 2
#define mma_tf32x3_1x1_n64_ROWS 4
#define mma_tf32x3_1x1_n64_COLS 32
#define mma_tf32x3_1x1_n64_NT 64
#define mma_tf32x3_1x1_n64_THREADS 256
#define mma_tf32x3_1x1_n64_BLOCKS 0
#define mma_tf32x3_1x1_n64_STAGE 8192
#define mma_tf32x3_1x1_n64_STAGES 3

// FP32 convolutions: columns of every tile, then its channels and rows, threads, blocks per SM that the registers must
// allow, and bytes of shared memory from 8.0 and on 7.5 for every entry
#define F32_COLS 64
#define conv3x3_f32_n32_NT 32
#define conv3x3_f32_n32_ROWS 8
#define conv3x3_f32_n32_THREADS 256
#define conv3x3_f32_n32_BLOCKS 2
#define conv3x3_f32_n32_SHARED 32896
#define conv3x3_f32_n32_SHARED_75 32768
#define conv3x3_f32_n64_NT 64
#define conv3x3_f32_n64_ROWS 1
#define conv3x3_f32_n64_THREADS 128
#define conv3x3_f32_n64_BLOCKS 4
#define conv3x3_f32_n64_SHARED 25536
#define conv3x3_f32_n64_SHARED_75 16384
#define conv3x3s2_f32_n64_NT 64
#define conv3x3s2_f32_n64_ROWS 1
#define conv3x3s2_f32_n64_THREADS 128
#define conv3x3s2_f32_n64_BLOCKS 4
#define conv3x3s2_f32_n64_SHARED 32256
#define conv3x3s2_f32_n64_SHARED_75 16384
#define conv1x1s2_f32_n64_NT 64
#define conv1x1s2_f32_n64_ROWS 2
#define conv1x1s2_f32_n64_THREADS 128
#define conv1x1s2_f32_n64_BLOCKS 4
#define conv1x1s2_f32_n64_SHARED 16384
#define conv1x1s2_f32_n64_SHARED_75 16384

// Packing of weights: one weight a thread
#define PACK_THREADS 256

// First convolution: threads of a block, mel rows of a thread, mel rows of a block (which takes 32 frames)
#define STEM_THREADS 128
#define STEM_PIXELS 4
#define STEM_ROWS 16

// Statistics pooling: a warp takes one row of one unit
#define POOL_THREADS 256
#define POOL_CHANNELS 256

// Linear layer: rows and outputs of a tile, inputs of a step, splits of 5,120 inputs (the same for every number of rows,
// so that a result does not depend on its neighbours)
#define DENSE_THREADS 256
#define DENSE_TILE 64
#define DENSE_STEP 32
#define DENSE_SPLITS 20

// Log-mel features
#define FBANK_FFT 512
#define FBANK_FRAME 400
#define FBANK_MELS 80
#define FBANK_THREADS 128
#define FBANK_FEATURE_THREADS 320
#define FBANK_SLIDING_ROWS 64

// Segmentation: geometry of a window; the scale of weights that are split into two FP16, and a bound of all of them
#define SEG_SAMPLES 160000
#define SEG_FRAMES 589
#define SEG_HIDDEN 128
#define SEG_CLASSES 7
#define SPLIT_SCALE 64
#define SPLIT_LIMIT 250

// Convolutional front: outputs of the filters, frames after each pooling, outputs of a block of filters, pooled frames of
// a tile of partial statistics (filters, convolutions), channels of the convolutions with padding
#define MOMENT_THREADS 1024
#define SINC_OUTPUTS 15975
#define SINC_FRAMES 5325
#define SINC_FRAMES2 1773
#define SINC_TAPS 251
#define SINC_TAPS_PADDED 260
#define SINC_FILTERS 80
#define SINC_THREADS 256
#define SINC_TILE 256
#define SINC_POOL_THREADS 320
#define SINC_POOL_TILE 64
#define TIME_CONV_THREADS 256
#define TIME_CONV_TILE 32
#define TIME_CONV_CHANNELS 64
#define NORM_THREADS 1024
#define SPLIT_THREADS 256

// LSTM: windows of a block of the recurrence, fragments of low weights that registers hold, bytes of shared memory;
// tile and shared memory of the input projection from 8.0 and on 7.5
#define LSTM_THREADS 256
#define LSTM_WINDOWS 4
#define LSTM_RESIDENT 18
#define LSTM_SHARED 61696
#define PROJECT_THREADS 256
#define PROJECT_TILE 128
#define PROJECT_SHARED 73728
#define PROJECT_SHARED_75 36864

// Linear layers and classifier: rows of a block
#define CLASSIFY_THREADS 256
#define CLASSIFY_ROWS 64
