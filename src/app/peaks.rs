//! Lowest and highest sample of any stretch of a recording, for drawing its waveform at any zoom.
//!
//! A pyramid: level 0 holds minimum and maximum of every [`BUCKET`] samples, each further level of pairs of the level
//! below. It is filled in order while the recording is decoded, and can be drawn at any time.
//! Depends on `audio` for the sample rate only.

use crate::audio::SAMPLE_RATE;

/// Samples in a bucket of the finest level: 8 ms.
pub const BUCKET: usize = 128;

/// Lowest and highest sample, as square roots in steps of 1/127: quiet speech keeps its shape in eight bits.
type Span = [i8; 2];

/// Minimum and maximum of every stretch of a recording, 4 bytes a bucket: 18 MB for 10 hours.
#[derive(Debug, Clone, Default)]
pub struct Peaks {
    /// `levels[k][i]` spans the buckets `i << k` to `(i + 1) << k`; only whole pairs are entered.
    levels: Vec<Vec<Span>>,
    /// Extremes of the samples that fill no bucket yet, and their number.
    low: f32,
    high: f32,
    open: usize,
    samples: u64,
}

impl Peaks {
    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The peaks of a whole recording at [`SAMPLE_RATE`].
    pub fn of(samples: &[f32]) -> Self {
        let mut peaks = Self::new();
        peaks.push(samples);
        peaks
    }

    /// Adds the next samples at [`SAMPLE_RATE`]. Values outside of [-1, 1] are drawn at full scale, NaN as silence.
    pub fn push(&mut self, mut samples: &[f32]) {
        self.samples += samples.len() as u64;
        while !samples.is_empty() {
            let (now, later) = samples.split_at(samples.len().min(BUCKET - self.open));
            let (low, high) = extremes(now);
            if self.open == 0 {
                (self.low, self.high) = (low, high);
            } else {
                (self.low, self.high) = (self.low.min(low), self.high.max(high));
            }
            self.open += now.len();
            if self.open == BUCKET {
                self.enter(span(self.low, self.high));
                self.open = 0;
            }
            samples = later;
        }
    }

    /// Samples added so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Seconds added so far.
    pub fn duration(&self) -> f64 {
        self.samples as f64 / f64::from(SAMPLE_RATE)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<Span>()).sum()
    }

    /// Minimum and maximum of `count` columns of equal width that divide the seconds `from` to `to`.
    ///
    /// A column has the buckets from the one that its left border falls into up to, not including, the one that its
    /// right border falls into, but at least one. So every bucket of the range is in exactly one column as long as
    /// columns are at least as wide as a bucket, and nothing is drawn more than one bucket (8 ms) away from its time.
    /// Columns outside of the recording are (0, 0).
    pub fn columns(&self, from: f64, to: f64, count: usize) -> impl ExactSizeIterator<Item = (f32, f32)> {
        let rate = f64::from(SAMPLE_RATE) / BUCKET as f64;
        let (first, step) = (from * rate, (to - from) * rate / count.max(1) as f64);
        let bucket = move |column: usize| (first + column as f64 * step).floor();
        let end = self.buckets() as f64;
        (0..count).map(move |column| {
            let (left, right) = (bucket(column), bucket(column + 1).max(bucket(column) + 1.0));
            let (left, right) = (left.max(0.0), right.min(end));
            if left < right { self.between(left as usize, right as usize) } else { (0.0, 0.0) }
        })
    }

    /// Whole buckets, and one more for the samples that fill none.
    fn buckets(&self) -> usize {
        self.whole() + usize::from(self.open > 0)
    }

    fn whole(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// Extremes of the buckets `left..right`, by at most two entries of every level.
    fn between(&self, mut left: usize, mut right: usize) -> (f32, f32) {
        let mut all: Span = [i8::MAX, i8::MIN];
        if right > self.whole() {
            all = span(self.low, self.high);
            right -= 1;
        }
        for level in &self.levels {
            if left >= right {
                break;
            }
            if left % 2 == 1 {
                all = join(all, level[left]);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                all = join(all, level[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        (value(all[0]), value(all[1]))
    }

    /// Adds a whole bucket and every pair that it completes.
    fn enter(&mut self, mut span: Span) {
        for k in 0.. {
            if k == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[k];
            if level.len() == level.capacity() {
                // A sixteenth more instead of twice: the memory must stay near what is used.
                level.reserve_exact(256.max(level.len() / 16));
            }
            level.push(span);
            if level.len() % 2 == 1 {
                break;
            }
            span = join(level[level.len() - 2], span);
        }
    }
}

/// Lowest and highest of `samples`, which are not empty.
fn extremes(samples: &[f32]) -> (f32, f32) {
    // Eight running values are what the compiler turns into vector instructions.
    const LANES: usize = 8;
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let chunks = samples.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            low[i] = if chunk[i] < low[i] { chunk[i] } else { low[i] };
            high[i] = if chunk[i] > high[i] { chunk[i] } else { high[i] };
        }
    }
    for (i, &sample) in rest.iter().enumerate() {
        low[i] = if sample < low[i] { sample } else { low[i] };
        high[i] = if sample > high[i] { sample } else { high[i] };
    }
    let low = low.into_iter().fold(f32::INFINITY, f32::min);
    let high = high.into_iter().fold(f32::NEG_INFINITY, f32::max);
    if low > high { (0.0, 0.0) } else { (low, high) }
}

fn join(a: Span, b: Span) -> Span {
    [a[0].min(b[0]), a[1].max(b[1])]
}

fn span(low: f32, high: f32) -> Span {
    let root = |x: f32| (x.abs().min(1.0).sqrt() * 127.0).round().copysign(x) as i8;
    [root(low), root(high)]
}

fn value(root: i8) -> f32 {
    let x = f32::from(root) / 127.0;
    x * x.abs()
}
