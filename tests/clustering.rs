//! Clustering and timeline on generated data (C5, C7-C16).

use proptest::prelude::*;

use speakrs_app::clustering::linkage::{Merge, linkage, linkage_in_linear_memory, linkage_in_matrix};
use speakrs_app::clustering::{
    ClusteringError, Params, Plda, SpeakerBounds, SpeakerRange, Voices, ahc, cluster, keep_largest, kmeans,
};
use speakrs_app::math::Rows;
use speakrs_app::math::random::Random;
use speakrs_app::models::pack::PldaArrays;
use speakrs_app::models::windows::{Activity, LOCAL_SPEAKERS, WINDOW_FRAMES, WINDOW_SAMPLES, Windows};
use speakrs_app::timeline::aggregate::{capped, speaker_count};
use speakrs_app::timeline::reconstruct::{Run, columns, reconstruct};
use speakrs_app::timeline::segment::{segments, speakers};
use speakrs_app::timeline::{SegmentOptions, Turns, turns};

use crate::parity::Capture;
use crate::support::fixtures::fixtures;

const DIM: usize = 16;

/// Normal to a good approximation: twelve uniform numbers, centred.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Unit vectors around `voices` random directions, the voices taking turns.
fn voices(seed: u64, n: usize, dim: usize, voices: usize, spread: f64) -> Rows {
    let mut random = Random::new(seed);
    let mut centres = Rows::zeros(voices, dim);
    centres.as_mut_slice().iter_mut().for_each(|v| *v = normal(&mut random));
    let centres = centres.normalised();
    let mut points = Rows::zeros(n, dim);
    for i in 0..n {
        let centre = centres.row(i % voices);
        for (v, c) in points.row_mut(i).iter_mut().zip(centre) {
            *v = c + spread / (dim as f64).sqrt() * normal(&mut random);
        }
    }
    points.normalised()
}

/// A PLDA that changes little: no means, the first half of the dimensions, decreasing variances.
fn plda() -> Plda {
    let latent = DIM / 2;
    let unit =
        |rows: usize| (0..rows * latent).map(|i| f64::from(u8::from(i / latent == i % latent))).collect();
    Plda::new(PldaArrays {
        mean1: vec![0.0; DIM],
        mean2: vec![0.0; latent],
        lda: unit(DIM),
        mu: vec![0.0; latent],
        tr: unit(latent),
        psi: (0..latent).map(|i| 20.0 / (i + 1) as f64).collect(),
    })
    .unwrap()
}

/// Activity of `windows` windows in which `speaking` local speakers talk one after the other.
fn taking_turns(windows: usize, speaking: usize) -> Activity {
    let mut data = vec![0; windows * WINDOW_FRAMES * LOCAL_SPEAKERS];
    for (i, frame) in data.chunks_exact_mut(LOCAL_SPEAKERS).enumerate() {
        frame[(i % WINDOW_FRAMES) * speaking / WINDOW_FRAMES] = 1;
    }
    Activity::new(data)
}

fn random_embeddings(activity: &Activity, seed: u64, voices: usize, spread: f64) -> Vec<f32> {
    let points = self::voices(seed, activity.windows() * LOCAL_SPEAKERS, DIM, voices, spread);
    points.as_slice().iter().map(|&v| v as f32).collect()
}

fn windows(count: usize, step: usize) -> Windows {
    Windows::new(WINDOW_SAMPLES + (count - 1) * step, step)
}

fn exactly(num: usize) -> SpeakerBounds {
    SpeakerBounds { num: Some(num), ..SpeakerBounds::default() }
}

/// Points on a small integer grid: most distances are tied.
fn grid(seed: u64, n: usize, dim: usize, levels: u64) -> Rows {
    let mut random = Random::new(seed);
    Rows::new((0..n * dim).map(|_| (random.bits() % levels) as f64).collect(), dim)
}

fn fnv(values: impl IntoIterator<Item = usize>) -> u64 {
    values
        .into_iter()
        .fold(14_695_981_039_346_656_037, |hash, v| (hash ^ v as u64).wrapping_mul(1_099_511_628_211))
}

/// Hashes of SciPy 1.17's `linkage(X, "centroid")[:, :2]` and of its compacted `fcluster(Z, t, "distance")`.
#[test]
fn linkage_breaks_ties_as_scipy_does() {
    let cases = [
        (1, 40, 2, 8, 1.5, 0x3fcf_2b86_3820_a2e4, 0x9a20_bbe2_9051_92e7),
        (2, 120, 3, 4, 1.0, 0xe5c4_88b0_8324_f45c, 0xc6ae_0e1b_3784_9186),
        (3, 300, 4, 3, 1.2, 0x359c_3d36_4869_4f62, 0x7c21_1c77_a8c8_ac9b),
        (4, 200, 1, 50, 0.9, 0x745e_41ec_6bd6_5992, 0x964c_1b5d_840d_3e90),
        (5, 500, 8, 2, 1.4, 0xc185_fac1_24d1_5952, 0x1fe3_fce6_2bd8_16b5),
        (6, 60, 2, 100, 9.0, 0x6b90_c3bd_8b14_9d24, 0xba41_7734_0417_d68b),
    ];
    for (seed, n, dim, levels, threshold, tree_hash, labels_hash) in cases {
        let tree = linkage(&grid(seed, n, dim, levels));
        assert_eq!(fnv(tree.iter().flat_map(|m| [m.left, m.right])), tree_hash, "tree {seed}");
        assert_eq!(fnv(ahc::flat_labels(&tree, n, threshold)), labels_hash, "labels {seed}");
    }
}

#[test]
fn cut_looks_at_the_highest_merge_of_the_subtree() {
    // An inversion: the last merge is low, but the one below it is above the threshold.
    let merge = |left, right, height| Merge { left, right, height };
    let tree = [merge(0, 1, 0.7), merge(2, 3, 0.5)];
    assert_eq!(ahc::flat_labels(&tree, 3, 0.6), [0, 1, 2]);
    // Subtrees are numbered before the leaves next to them.
    let tree = [merge(1, 2, 0.1), merge(0, 3, 0.9)];
    assert_eq!(ahc::flat_labels(&tree, 3, 0.6), [1, 0, 0]);
    assert_eq!(ahc::cluster(&voices(1, 1, DIM, 1, 0.1), 0.6), [0]);
    assert!(ahc::cluster(&Rows::zeros(0, DIM), 0.6).is_empty());
}

#[test]
fn linear_memory_gives_the_same_tree() {
    for (seed, n, count, spread) in [(1, 700, 5, 0.3), (2, 1500, 40, 0.8), (3, 400, 400, 1.0), (4, 2, 1, 0.1)]
    {
        let points = voices(seed, n, DIM, count, spread);
        let (matrix, linear) = (linkage_in_matrix(&points), linkage_in_linear_memory(&points));
        for (a, b) in matrix.iter().zip(&linear) {
            assert_eq!((a.left, a.right), (b.left, b.right));
            assert!((a.height - b.height).abs() < 1e-9);
        }
        assert_eq!(ahc::flat_labels(&matrix, n, 0.6), ahc::flat_labels(&linear, n, 0.6));
    }
}

#[test]
fn linkage_does_not_depend_on_the_threads() {
    let points = voices(7, 3_000, DIM, 60, 0.8);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (linkage_in_matrix(&points), linkage_in_linear_memory(&points)))
    };
    assert_eq!(with(1), with(4));
}

#[test]
fn duplicates_do_not_break_the_linkage() {
    let points = Rows::new([1.0, 0.0].repeat(50), 2);
    assert_eq!(ahc::cluster(&points, 0.6), [0; 50]);
    let tree = linkage_in_linear_memory(&points);
    assert!(tree.iter().all(|merge| merge.height == 0.0));
}

#[test]
fn only_the_largest_clusters_start_vbx_when_there_are_too_many() {
    let points = Rows::new(vec![1.0, 0.0, 1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.0, 1.0], 2).normalised();
    assert_eq!(keep_largest(&points, vec![1, 1, 0, 2, 2], 2), [0, 0, 0, 1, 1]);
    assert_eq!(keep_largest(&points, vec![1, 1, 0, 2, 2], 1), [0; 5]);
}

#[test]
fn kmeans_finds_the_voices_and_always_the_same() {
    let points = voices(3, 300, DIM, 4, 0.3);
    let labels = kmeans::cluster(&points, 4);
    assert_eq!(labels, (0..300).map(|i| i % 4).collect::<Vec<_>>());
    let noise = voices(4, 300, DIM, 300, 1.0);
    let split = kmeans::cluster(&noise, 17);
    assert_eq!(split, kmeans::cluster(&noise, 17));
    assert!((0..17).all(|k| split.contains(&k)));
    assert_eq!(kmeans::cluster(&noise, 300), (0..300).collect::<Vec<_>>());
}

#[test]
fn kmeans_with_fewer_different_points_than_clusters() {
    let points = Rows::new(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 2);
    assert_eq!(kmeans::cluster(&points, 3), [0, 1, 0]);
}

#[test]
fn bounds_are_checked() {
    let range = |num, min, max| SpeakerBounds { num, min, max }.range();
    assert_eq!(range(None, None, None), Ok(SpeakerRange { min: 1, max: usize::MAX }));
    assert_eq!(range(Some(3), None, None), Ok(SpeakerRange { min: 3, max: 3 }));
    assert_eq!(range(None, Some(2), None), Ok(SpeakerRange { min: 2, max: usize::MAX }));
    assert_eq!(range(None, None, Some(2)), Ok(SpeakerRange { min: 1, max: 2 }));
    assert_eq!(range(None, Some(2), Some(2)), Ok(SpeakerRange { min: 2, max: 2 }));
    assert_eq!(range(None, Some(3), Some(2)), Err(ClusteringError::MinAboveMax { min: 3, max: 2 }));
    assert_eq!(range(Some(2), None, Some(3)), Err(ClusteringError::ExactWithBounds));
    assert_eq!(range(Some(0), None, None), Err(ClusteringError::NoSpeakers));
    assert_eq!(range(None, None, Some(0)), Err(ClusteringError::NoSpeakers));
}

#[test]
fn every_bound_is_kept() {
    let activity = taking_turns(30, 2);
    let embeddings = random_embeddings(&activity, 5, 3, 0.2);
    let clusters = |bounds: SpeakerBounds| {
        cluster(&activity, &embeddings, &plda(), &Params::default(), &bounds).unwrap().clusters()
    };
    let free = clusters(SpeakerBounds::default());
    assert!((2..=3).contains(&free));
    for n in 1..=6 {
        assert_eq!(clusters(exactly(n)), n);
        assert_eq!(clusters(SpeakerBounds { min: Some(n), ..SpeakerBounds::default() }), n.max(free));
        assert_eq!(clusters(SpeakerBounds { max: Some(n), ..SpeakerBounds::default() }), n.min(free));
    }
}

#[test]
fn more_speakers_than_embeddings_is_capped_with_a_warning() {
    let activity = taking_turns(2, 2);
    let embeddings = random_embeddings(&activity, 6, 2, 0.2);
    let found = cluster(&activity, &embeddings, &plda(), &Params::default(), &exactly(10)).unwrap();
    assert_eq!(found.clusters(), 4);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    let windows = windows(2, 16_000);
    let options = SegmentOptions::default();
    let turns =
        turns(&windows, &activity, &embeddings, &plda(), &Params::default(), &exactly(10), &options).unwrap();
    assert!(turns.embeddings.len() <= 4);
    assert_eq!(turns.warnings.len(), 1, "{:?}", turns.warnings);
}

#[test]
fn fewer_than_two_usable_embeddings_are_one_speaker() {
    let activity = taking_turns(3, 2);
    let mut embeddings = vec![f32::NAN; 3 * LOCAL_SPEAKERS * DIM];
    for usable in 0..2 {
        let found =
            cluster(&activity, &embeddings, &plda(), &Params::default(), &SpeakerBounds::default()).unwrap();
        assert_eq!(found.clusters(), 1);
        assert!(found.assignments.iter().all(|slots| *slots == [Some(0), Some(0), None]));
        assert_eq!(found.centroids.row(0)[0].is_nan(), usable == 0);
        embeddings[..DIM].fill(1.0);
    }
}

#[test]
fn unusable_embeddings_never_reach_the_clusters() {
    let activity = taking_turns(20, 2);
    let mut embeddings = random_embeddings(&activity, 9, 2, 0.2);
    for (i, value) in [f32::NAN, f32::INFINITY, 0.0, f32::NEG_INFINITY].into_iter().enumerate() {
        let at = (6 * i + 1) * DIM;
        embeddings[at..at + DIM].fill(value);
    }
    let voices = Voices::new(&activity, &embeddings, &plda(), &Params::default()).unwrap();
    assert_eq!(voices.usable(), 2 * 20 - 4);
    for bounds in [SpeakerBounds::default(), exactly(5)] {
        let found = voices.cluster(bounds.range().unwrap());
        assert!(found.centroids.as_slice().iter().all(|v| v.is_finite()));
    }
}

#[test]
fn embeddings_of_the_wrong_length_are_an_error() {
    let result =
        cluster(&taking_turns(2, 1), &[0.0; 5], &plda(), &Params::default(), &SpeakerBounds::default());
    assert_eq!(result, Err(ClusteringError::Shape { expected: 2 * LOCAL_SPEAKERS * DIM, found: 5 }));
}

#[test]
fn broken_plda_is_an_error() {
    let arrays = |psi: f64, mu: usize| PldaArrays {
        mean1: vec![0.0; 2],
        mean2: vec![0.0],
        lda: vec![0.0; 2],
        mu: vec![0.0; mu],
        tr: vec![1.0],
        psi: vec![psi],
    };
    assert!(Plda::new(arrays(1.0, 1)).is_ok());
    for bad in [arrays(1.0, 2), arrays(-1.0, 1), arrays(f64::NAN, 1)] {
        assert!(matches!(Plda::new(bad), Err(ClusteringError::Plda(_))));
    }
}

#[test]
fn silence_is_an_empty_result_with_a_note() {
    let activity = Activity::new(vec![0; 2 * WINDOW_FRAMES * LOCAL_SPEAKERS]);
    let embeddings = vec![f32::NAN; 2 * LOCAL_SPEAKERS * DIM];
    let options = SegmentOptions::default();
    let found = turns(
        &windows(2, 16_000),
        &activity,
        &embeddings,
        &plda(),
        &Params::default(),
        &exactly(2),
        &options,
    );
    let found = found.unwrap();
    assert_eq!((found.segments.len(), found.embeddings.len(), found.warnings.len()), (0, 0, 1));
}

#[test]
fn more_voices_at_once_than_clusters_pad_a_column() {
    let mut data = vec![0; WINDOW_FRAMES * LOCAL_SPEAKERS];
    data.chunks_exact_mut(LOCAL_SPEAKERS).skip(100).take(200).for_each(|frame| frame[..2].fill(1));
    let activity = Activity::new(data);
    let windows = windows(1, 16_000);
    let counts = speaker_count(&windows, &activity);
    assert_eq!((windows.frames(), counts[99], counts[100], counts[299], counts[300]), (594, 0, 2, 2, 0));
    assert_eq!(columns(1, &counts), 2);
    let assignments = [[Some(0), None, None]];
    let run = |column| Run { start: 100, end: 300, column };
    assert_eq!(reconstruct(&windows, &activity, &assignments, 1, &counts), [run(0), run(1)]);
    // Exclusive (C15): the padded column never comes first.
    assert_eq!(reconstruct(&windows, &activity, &assignments, 1, &capped(&counts, 1)), [run(0)]);
    // Two local speakers of one cluster count once, and equals go to the lower column.
    let assignments = [[Some(1), Some(1), None]];
    assert_eq!(reconstruct(&windows, &activity, &assignments, 2, &capped(&counts, 1)), [run(1)]);
    let assignments = [[Some(1), Some(0), None]];
    assert_eq!(reconstruct(&windows, &activity, &assignments, 2, &capped(&counts, 1)), [run(0)]);
}

/// The frame-by-frame definition of C13, with the whole matrix in memory.
fn reconstruct_plainly(
    windows: &Windows,
    activity: &Activity,
    assigned: &[[Option<usize>; 3]],
    counts: &[u8],
) -> Vec<Run> {
    let columns = columns(assigned.iter().flatten().flatten().max().map_or(1, |k| k + 1), counts);
    let mut scores = vec![vec![0; columns]; windows.frames()];
    for (c, slots) in assigned.iter().enumerate() {
        for (i, frame) in activity.window(c).iter().enumerate() {
            for (k, score) in scores[windows.start_frame(c) + i].iter_mut().enumerate() {
                *score += u32::from((0..3).any(|s| slots[s] == Some(k) && frame[s] == 1));
            }
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    for (frame, scores) in scores.iter().enumerate() {
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by_key(|&k| std::cmp::Reverse(scores[k]));
        for &column in &order[..counts[frame].into()] {
            match runs.iter_mut().find(|run| run.column == column && run.end == frame) {
                Some(run) => run.end += 1,
                None => runs.push(Run { start: frame, end: frame + 1, column }),
            }
        }
    }
    runs.sort_by_key(|run| (run.start, run.column));
    runs
}

#[test]
fn segments_are_clipped_merged_and_sorted() {
    let run = |start, end, column| Run { start, end, column };
    let runs = [run(10, 20, 1), run(10, 15, 0), run(16, 30, 0), run(98, 100, 2), run(99, 100, 3)];
    let plain = segments(&runs, 100, &SegmentOptions::default());
    // The last run has no length: it would start and end in the middle of the last frame.
    assert_eq!(plain.iter().map(|s| s.speaker).collect::<Vec<_>>(), [0, 1, 0, 2]);
    assert!((plain[0].start - 0.199_718_75).abs() < 1e-12);
    let merged =
        segments(&runs, 100, &SegmentOptions { min_duration_off: 0.02, ..SegmentOptions::default() });
    assert_eq!(merged.iter().map(|s| s.speaker).collect::<Vec<_>>(), [1, 0, 2]);
    let long = segments(&runs, 100, &SegmentOptions { min_duration_on: 0.1, ..SegmentOptions::default() });
    assert_eq!(long.iter().map(|s| s.speaker).collect::<Vec<_>>(), [1, 0]);
    let cut = segments(&runs, 100, &SegmentOptions { duration: 0.25, ..SegmentOptions::default() });
    assert!(cut.len() == 2 && cut.iter().all(|s| s.end == 0.25));
}

fn check_turns(turns: &Turns, range: SpeakerRange) {
    let present = speakers(&turns.segments);
    assert_eq!(present, (0..turns.embeddings.len()).collect::<Vec<_>>(), "labels without gaps");
    assert!(present.len() <= range.max, "{} speakers, at most {}", present.len(), range.max);
    assert!(
        present.len() >= range.min || !turns.warnings.is_empty(),
        "{} speakers, no warning",
        present.len()
    );
    assert!(turns.segments.is_sorted_by(|a, b| (a.start, a.end) <= (b.start, b.end)));
    assert!(turns.segments.iter().chain(&turns.exclusive).all(|s| s.start < s.end));
    assert!(turns.exclusive.windows(2).all(|pair| pair[0].end <= pair[1].start), "exclusive");
    assert!(turns.embeddings.iter().flatten().all(|v| v.is_finite()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// The promise on the number of speakers, on real activity with arbitrary embeddings.
    #[test]
    fn speaker_bounds_hold_in_the_output(
        name in prop::sample::select(vec!["02_pyannote_sample", "04_three_speaker"]),
        seed: u64,
        count in 1usize..8,
        spread in 0.05f64..1.5,
        min in 1usize..7,
        extra in prop::option::of(0usize..3),
        broken in 0usize..40,
    ) {
        let Some(fixtures) = fixtures() else { return Ok(()) };
        let capture = Capture::community(&fixtures, name);
        let mut embeddings = random_embeddings(&capture.activity, seed, count, spread);
        embeddings[..broken * DIM].fill(f32::NAN);
        let bounds = SpeakerBounds { num: None, min: Some(min), max: extra.map(|extra| min + extra) };
        let options = SegmentOptions { duration: 25.0, ..SegmentOptions::default() };
        let found = turns(
            &capture.windows, &capture.activity, &embeddings, &plda(), &Params::default(), &bounds, &options,
        ).unwrap();
        check_turns(&found, bounds.range().unwrap());
    }

    /// Any activity, steps other than 1 s, gaps between windows included.
    #[test]
    fn reconstruction_follows_its_definition(
        seed: u64,
        step in prop::sample::select(vec![8_000usize, 16_000, 32_000, 50_001, 160_000]),
        count in 1usize..7,
        clusters in 1usize..6,
    ) {
        let mut random = Random::new(seed);
        let mut state = [0u8; LOCAL_SPEAKERS];
        let data = (0..count * WINDOW_FRAMES).flat_map(|_| {
            state = state.map(|v| if random.unit() < 0.02 { 1 - v } else { v });
            state
        });
        let activity = Activity::new(data.collect());
        let windows = windows(count, step);
        let mut slot = || Some((random.unit() * (clusters + 1) as f64) as usize).filter(|&k| k < clusters);
        let mut assignments: Vec<_> = (0..count).map(|_| [slot(), slot(), slot()]).collect();
        assignments[0][0] = Some(clusters - 1);
        let counts = speaker_count(&windows, &activity);
        let found = reconstruct(&windows, &activity, &assignments, clusters, &counts);
        prop_assert_eq!(found, reconstruct_plainly(&windows, &activity, &assignments, &counts));
    }
}
