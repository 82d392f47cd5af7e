//! Every stage after the networks against captures of the reference pipeline (C5, C7-C14).

use std::fs;
use std::path::{Path, PathBuf};

use speakrs_app::clustering::assign::{Floor, Scorer, constrained};
use speakrs_app::clustering::{
    Assignment, Embeddings, Params, Plda, SpeakerBounds, Voices, ahc, cluster, gather, latent_vectors,
    linkage, train_slots, vbx, weighted_centroids,
};
use speakrs_app::math::Rows;
use speakrs_app::models::pack::PldaArrays;
use speakrs_app::models::windows::{Activity, DEFAULT_STEP_SAMPLES, WINDOW_SAMPLES, Windows};
use speakrs_app::timeline::aggregate::speaker_count;
use speakrs_app::timeline::reconstruct::{Run, columns, reconstruct};
use speakrs_app::timeline::segment::{label, segments};
use speakrs_app::timeline::{Segment, SegmentOptions, turns};

use crate::support::fixtures::fixtures;
use crate::support::npy::{Array, load, load_npz};

const DIM: usize = 256;

/// The PLDA of community-1, which belongs to the captured embeddings.
pub fn community_plda(fixtures: &Path) -> Plda {
    let folder = fixtures.join("../models/plda-community-1");
    let transform = |name| load_npz(&folder.join("xvec_transform.npz"), name).data;
    let plda = |name| load_npz(&folder.join("plda.npz"), name).data;
    Plda::new(PldaArrays {
        mean1: transform("mean1"),
        mean2: transform("mean2"),
        lda: transform("lda"),
        mu: plda("mu"),
        tr: plda("tr"),
        psi: plda("psi"),
    })
    .unwrap()
}

/// Segmentation and embeddings of one capture.
pub struct Capture {
    pub folder: PathBuf,
    pub windows: Windows,
    pub activity: Activity,
    pub embeddings: Vec<f32>,
}

impl Capture {
    fn new(folder: PathBuf, segmentation: &Array, embeddings: &Array) -> Self {
        let activity = Activity::new(segmentation.data.iter().map(|&v| v as u8).collect());
        let samples = WINDOW_SAMPLES + (activity.windows() - 1) * DEFAULT_STEP_SAMPLES;
        let windows = Windows::new(samples, DEFAULT_STEP_SAMPLES);
        Self { folder, windows, activity, embeddings: embeddings.to_f32() }
    }

    /// One of the captures of community-1.
    pub fn community(fixtures: &Path, name: &str) -> Self {
        let folder = fixtures.join("parity").join(name);
        let segmentation = load_npz(&folder.join("segmentations.npz"), "segmentations");
        let embeddings = load_npz(&folder.join("raw_embeddings.npz"), "embeddings");
        Self::new(folder, &segmentation, &embeddings)
    }

    /// The capture with NaN in inactive slots.
    pub fn with_nan(fixtures: &Path) -> Self {
        let folder = fixtures.join("pipeline_nan");
        let segmentation = load(&folder.join("pipeline_segmentation_data.npy"));
        let embeddings = load(&folder.join("pipeline_embeddings_data.npy"));
        Self::new(folder, &segmentation, &embeddings)
    }

    fn npz(&self, file: &str, name: &str) -> Array {
        load_npz(&self.folder.join(file), name)
    }
}

fn max_error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Largest difference after each column of `b` got the sign that fits `a` better.
fn max_error_up_to_column_signs(a: &Rows, b: &[f64]) -> f64 {
    let dim = a.dim();
    let mut worst: f64 = 0.0;
    for d in 0..dim {
        let column = |values: &[f64]| values.iter().skip(d).step_by(dim).copied().collect::<Vec<f64>>();
        let (a, b) = (column(a.as_slice()), column(b));
        let negated: Vec<f64> = b.iter().map(|v| -v).collect();
        worst = worst.max(max_error(&a, &b).min(max_error(&a, &negated)));
    }
    worst
}

fn as_numbers(assignments: &[Assignment]) -> Vec<f64> {
    assignments.iter().flatten().map(|cluster| cluster.map_or(-2.0, |k| k as f64)).collect()
}

fn discrete(runs: &[Run], frames: usize, columns: usize) -> Vec<f64> {
    let mut cells = vec![0.0; frames * columns];
    for run in runs {
        (run.start..run.end).for_each(|frame| cells[frame * columns + run.column] = 1.0);
    }
    cells
}

fn rttm(uri: &str, segments: &[Segment], decimals: usize) -> String {
    let line = |s: &Segment| {
        let (start, duration, label) = (s.start, s.end - s.start, label(s.speaker));
        format!("SPEAKER {uri} 1 {start:.decimals$} {duration:.decimals$} <NA> <NA> {label} <NA> <NA>\n")
    };
    segments.iter().map(line).collect()
}

fn assert_lines(found: &str, expected: &str) {
    for (i, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", i + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

fn check_community(name: &str) {
    let Some(fixtures) = fixtures() else { return };
    let capture = Capture::community(&fixtures, name);
    let plda = community_plda(&fixtures);
    let params = Params::default();
    let Capture { windows, activity, embeddings, .. } = &capture;

    let counts = speaker_count(windows, activity);
    assert_eq!(
        counts.iter().map(|&v| usize::from(v)).collect::<Vec<_>>(),
        capture.npz("reconstruction.npz", "count").to_usize()
    );

    let slots = train_slots(activity, Embeddings::new(embeddings, DIM), params.min_solo_frames);
    assert_eq!(
        slots.iter().map(|s| s.0).collect::<Vec<_>>(),
        capture.npz("plda_embeddings.npz", "train_chunk_idx").to_usize()
    );
    assert_eq!(
        slots.iter().map(|s| s.1).collect::<Vec<_>>(),
        capture.npz("plda_embeddings.npz", "train_speaker_idx").to_usize()
    );
    let train = gather(Embeddings::new(embeddings, DIM), &slots);

    let labels = ahc::cluster(&train.clone().normalised(), params.threshold);
    assert_eq!(labels, load(&capture.folder.join("ahc_init_labels.npy")).to_usize());
    let lean = linkage::linkage_in_linear_memory(&train.clone().normalised());
    assert_eq!(ahc::flat_labels(&lean, train.len(), params.threshold), labels, "linkage in linear memory");

    let reduced: Vec<f64> = train.iter().flat_map(|row| plda.reduce(row)).collect();
    let xvec_error = max_error(&reduced, &capture.npz("plda_embeddings.npz", "post_xvec").data);
    let latent = latent_vectors(&train, &plda);
    let plda_error =
        max_error_up_to_column_signs(&latent, &capture.npz("plda_embeddings.npz", "post_plda").data);
    let phi_error = max_error(plda.phi(), &capture.npz("plda_embeddings.npz", "phi").data);
    assert!(
        xvec_error < 1e-9 && plda_error < 1e-9 && phi_error < 1e-9,
        "{xvec_error} {plda_error} {phi_error}"
    );

    let clusters = labels.iter().max().unwrap() + 1;
    let gamma = vbx::initial_gamma(&labels, clusters, params.smoothing);
    let init_error = max_error(gamma.as_slice(), &capture.npz("vbx_state.npz", "qinit").data);
    let vbx = vbx::refine(&latent, plda.phi(), gamma, &params);
    let gamma_error = max_error(vbx.gamma.as_slice(), &capture.npz("vbx_state.npz", "q_final").data);
    let pi_error = max_error(&vbx.pi, &capture.npz("vbx_state.npz", "sp_final").data);
    let elbo_error = max_error(&vbx.elbo, &capture.npz("vbx_state.npz", "elbo_trajectory").data);
    assert!(init_error < 1e-12 && gamma_error < 1e-6 && pi_error < 1e-6 && elbo_error < 1e-6);

    let centroids = weighted_centroids(&train, &vbx, params.min_prior);
    let centroid_error = max_error(centroids.as_slice(), &capture.npz("clustering.npz", "centroids").data);
    let slots = Embeddings::new(embeddings, DIM);
    let scorer = Scorer::new(&centroids);
    let floor = Floor::new(activity.windows(), slots, &scorer);
    let soft: Vec<f64> = (0..activity.windows())
        .flat_map(|c| (0..3).map(move |s| (c, s)))
        .flat_map(|(c, s)| {
            if activity.is_active(c, s) {
                scorer.scores(slots.get(c, s))
            } else {
                vec![floor.inactive; centroids.len()]
            }
        })
        .collect();
    let soft_error = max_error(&soft, &capture.npz("clustering.npz", "soft_clusters").data);
    assert!(centroid_error < 1e-6 && soft_error < 1e-6, "{centroid_error} {soft_error}");
    let hard = constrained(activity, slots, &scorer);
    // The capture was taken before inactive slots are reset (C12).
    let mut reference = capture.npz("clustering.npz", "hard_clusters").data;
    for (i, cluster) in reference.iter_mut().enumerate().filter(|(i, _)| !activity.is_active(i / 3, i % 3)) {
        assert!(hard[i / 3][i % 3].is_none());
        *cluster = -2.0;
    }
    assert!(as_numbers(&hard) == reference, "hard clusters");

    let runs = reconstruct(windows, activity, &hard, centroids.len(), &counts);
    let reference = capture.npz("reconstruction.npz", "discrete_diarization");
    assert_eq!(reference.shape, [counts.len(), columns(centroids.len(), &counts)]);
    assert_eq!(discrete(&runs, counts.len(), reference.shape[1]), reference.data);

    let expected = fs::read_to_string(capture.folder.join("reference.rttm")).unwrap();
    let uri = expected.split(' ').nth(1).unwrap();
    let found = segments(&runs, counts.len(), &SegmentOptions::default());
    assert_lines(&rttm(uri, &found, 3), &expected);
    let bounds = SpeakerBounds::default();
    let whole =
        turns(windows, activity, embeddings, &plda, &params, &bounds, &SegmentOptions::default()).unwrap();
    assert_lines(&rttm(uri, &whole.segments, 3), &expected);
    println!(
        "{name}: post_xvec {xvec_error:.1e}, post_plda {plda_error:.1e}, phi {phi_error:.1e}, gamma {gamma_error:.1e}, \
         pi {pi_error:.1e}, ELBO {elbo_error:.1e}, centroids {centroid_error:.1e}, soft {soft_error:.1e}"
    );
}

#[test]
fn dialogue() {
    check_community("01_dialogue");
}

#[test]
fn pyannote_sample() {
    check_community("02_pyannote_sample");
}

#[test]
fn three_speaker() {
    check_community("04_three_speaker");
}

#[test]
fn long_recording() {
    check_community("06_long_recording");
}

#[test]
fn inactive_slots_that_are_nan() {
    let Some(fixtures) = fixtures() else { return };
    let capture = Capture::with_nan(&fixtures);
    let array = |name: &str| load(&capture.folder.join(format!("pipeline_{name}.npy")));
    let plda = community_plda(&fixtures);
    let params = Params::default();
    let Capture { windows, activity, embeddings, .. } = &capture;
    let slots = Embeddings::new(embeddings, DIM);

    let counts = speaker_count(windows, activity);
    assert_eq!(
        counts.iter().map(|&v| usize::from(v)).collect::<Vec<_>>(),
        array("speaker_counting_data").to_usize()
    );
    let kept = train_slots(activity, slots, params.min_solo_frames);
    assert_eq!(kept.iter().map(|s| s.0).collect::<Vec<_>>(), array("train_chunk_idx").to_usize());
    assert_eq!(kept.iter().map(|s| s.1).collect::<Vec<_>>(), array("train_speaker_idx").to_usize());
    let train = gather(slots, &kept);
    let labels = ahc::cluster(&train.clone().normalised(), params.threshold);
    assert_eq!(labels, array("ahc_clusters").to_usize());
    let latent = latent_vectors(&train, &plda);
    let plda_error = max_error_up_to_column_signs(&latent, &array("plda_features").data);
    let gamma = vbx::initial_gamma(&labels, labels.iter().max().unwrap() + 1, params.smoothing);
    let vbx = vbx::refine(&latent, plda.phi(), gamma, &params);
    let gamma_error = max_error(vbx.gamma.as_slice(), &array("vbx_gamma").data);
    println!("pipeline_nan: post_plda {plda_error:.1e}, gamma {gamma_error:.1e}");
    assert!(plda_error < 1e-6 && gamma_error < 1e-6, "{plda_error} {gamma_error}");

    let centroids = weighted_centroids(&train, &vbx, params.min_prior);
    let floor = Floor::new(activity.windows(), slots, &Scorer::new(&centroids));
    assert_eq!(floor.inactive, floor.nan, "with any NaN inactive slots get the plain minimum (C6)");
    let found = cluster(activity, embeddings, &plda, &params, &SpeakerBounds::default()).unwrap();
    assert_eq!(as_numbers(&found.assignments), array("hard_clusters").data);
    let runs = reconstruct(windows, activity, &found.assignments, found.clusters(), &counts);
    assert_eq!(discrete(&runs, counts.len(), found.clusters()), array("discrete_diarization_data").data);
    let expected = fs::read_to_string(capture.folder.join("pipeline_expected.rttm")).unwrap();
    let segments = segments(&runs, counts.len(), &SegmentOptions::default());
    assert_lines(&rttm("pipeline", &segments, 6), &expected);
}

/// Porting mistakes seen elsewhere must change the result of the captures, else these tests would not notice them.
#[test]
fn known_porting_mistakes_are_noticed() {
    let Some(fixtures) = fixtures() else { return };
    let capture = Capture::community(&fixtures, "02_pyannote_sample");
    let plda = community_plda(&fixtures);
    let Capture { windows, activity, embeddings, .. } = &capture;
    let params = Params::default();
    let slots = Embeddings::new(embeddings, DIM);
    let train = gather(slots, &train_slots(activity, slots, params.min_solo_frames));
    let points = train.clone().normalised();
    let labels = ahc::cluster(&points, params.threshold);

    let converted = (2.0 - 2.0 * params.threshold).sqrt();
    assert_ne!(ahc::cluster(&points, converted), labels, "threshold taken for a cosine");
    assert_ne!(ahc::cluster(&train, params.threshold), labels, "no normalisation before AHC");
    assert_ne!(train_slots(activity, slots, 1).len(), train.len(), "no filter of short solo speech");

    // Bounds apply to what VBx kept, not to the AHC clusters: 4 there, 2 here.
    let voices = Voices::new(activity, embeddings, &plda, &params).unwrap();
    assert_eq!((labels.iter().max(), voices.count()), (Some(&3), 2));
    let unbounded = cluster(activity, embeddings, &plda, &params, &SpeakerBounds::default()).unwrap();
    let bounded = SpeakerBounds { max: Some(3), ..SpeakerBounds::default() };
    assert_eq!(cluster(activity, embeddings, &plda, &params, &bounded).unwrap(), unbounded);
    let three = SpeakerBounds { num: Some(3), ..SpeakerBounds::default() };
    assert_eq!(cluster(activity, embeddings, &plda, &params, &three).unwrap().clusters(), 3);

    // Half-to-even counting.
    let counts = speaker_count(windows, activity);
    let mut halves = 0;
    for (frame, &count) in counts.iter().enumerate() {
        let covering: Vec<usize> = (0..windows.count())
            .filter(|&c| (windows.start_frame(c)..windows.start_frame(c) + 589).contains(&frame))
            .collect();
        let active = |c: usize| {
            activity.window(c)[frame - windows.start_frame(c)].iter().map(|&v| u32::from(v)).sum::<u32>()
        };
        let sum: u32 = covering.iter().map(|&c| active(c)).sum();
        if !covering.is_empty() && (2 * sum) as usize % (2 * covering.len()) == covering.len() {
            halves += 1;
            assert_eq!(count % 2, 0);
        }
    }
    assert!(halves >= 10, "{halves} exact halves");
}

/// The promise on the number of speakers, on real recordings: kept wherever the speech allows it.
#[test]
fn asked_numbers_of_speakers_come_out() {
    let Some(fixtures) = fixtures() else { return };
    let plda = community_plda(&fixtures);
    for name in ["01_dialogue", "02_pyannote_sample", "04_three_speaker"] {
        let capture = Capture::community(&fixtures, name);
        let Capture { windows, activity, embeddings, .. } = &capture;
        for num in 1..=5 {
            let bounds = SpeakerBounds { num: Some(num), ..SpeakerBounds::default() };
            let options = SegmentOptions::default();
            let found =
                turns(windows, activity, embeddings, &plda, &Params::default(), &bounds, &options).unwrap();
            println!("{name}: {num} asked, {} found, {:?}", found.embeddings.len(), found.warnings);
            assert!(found.embeddings.len() <= num);
            assert_eq!(found.embeddings.len() < num, !found.warnings.is_empty());
        }
    }
}
