// Every constant that device and host code share: `#define NAME integer`, nothing else. The device code includes this
// file, `src/backend/cuda/tiles.rs` reads it at compile time.

// Warp and memory
#define WARP 32
#define UNIT_BYTES 16

// Statistics pooling
#define POOL_FRAMES 125
#define POOL_MASKS 3
