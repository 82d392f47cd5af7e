//! One bidirectional LSTM layer over a group of windows; every step is one matrix product for the whole group.

use super::activation::{sigmoid, tanh};
use super::gemm::{Output, gemm, transposed};
use crate::math::simd::vectorised;
use crate::models::segmentation::{GATES, HIDDEN, LstmDirection};

/// Rows of the gates.
const ROWS: usize = GATES * HIDDEN;
/// Steps whose input projections are computed in one product: keeps them in cache until they are used.
const PROJECTED_STEPS: usize = 16;

/// Output of a layer, one sequence a direction: `[steps, windows, HIDDEN]`.
pub(super) type Sequences = [Vec<f32>; 2];

/// One direction with column-major weights.
struct Direction {
    /// One `[ROWS, width]` matrix for each part of the input.
    input: Vec<Vec<f32>>,
    hidden: Vec<f32>,
    bias: Vec<f32>,
}

impl Direction {
    fn new(weights: &LstmDirection, widths: &[usize]) -> Self {
        let mut columns = transposed(&weights.input_weight, ROWS, weights.input);
        let input = widths
            .iter()
            .map(|width| {
                let rest = columns.split_off(width * ROWS);
                std::mem::replace(&mut columns, rest)
            })
            .collect();
        Self { input, hidden: transposed(&weights.hidden_weight, ROWS, HIDDEN), bias: weights.bias.clone() }
    }

    /// Runs over `inputs`, each `[steps, windows, width]`, from the end if `reverse`.
    fn run(&self, inputs: &[&[f32]], windows: usize, reverse: bool) -> Vec<f32> {
        let width = |part: usize| self.input[part].len() / ROWS * windows;
        let steps = inputs[0].len() / width(0);
        let (mut hidden, mut cell) = (vec![0.0; windows * HIDDEN], vec![0.0; windows * HIDDEN]);
        let mut out = vec![0.0; steps * windows * HIDDEN];
        let mut gates = vec![0.0; PROJECTED_STEPS * windows * ROWS];
        let blocks = steps.div_ceil(PROJECTED_STEPS);
        for block in 0..blocks {
            let block = if reverse { blocks - 1 - block } else { block };
            let first = block * PROJECTED_STEPS;
            let count = PROJECTED_STEPS.min(steps - first);
            let gates = &mut gates[..count * windows * ROWS];
            for row in gates.chunks_exact_mut(ROWS) {
                row.copy_from_slice(&self.bias);
            }
            for (part, x) in inputs.iter().enumerate() {
                let x = &x[first * width(part)..][..count * width(part)];
                gemm(gates, Output::Add, &self.input[part], x, ROWS);
            }
            for step in 0..count {
                let step = if reverse { count - 1 - step } else { step };
                let gates = &mut gates[step * windows * ROWS..][..windows * ROWS];
                gemm(gates, Output::Add, &self.hidden, &hidden, ROWS);
                vectorised!(update(gates, &mut cell, &mut hidden));
                out[(first + step) * windows * HIDDEN..][..windows * HIDDEN].copy_from_slice(&hidden);
            }
        }
        out
    }
}

/// `c = f c + i g`, `h = o tanh(c)` for every window and unit; gates in PyTorch's order i, f, g, o.
#[inline(always)]
fn update(gates: &[f32], cell: &mut [f32], hidden: &mut [f32]) {
    let states = cell.as_chunks_mut::<HIDDEN>().0.iter_mut().zip(hidden.as_chunks_mut::<HIDDEN>().0);
    for (gates, (cell, hidden)) in gates.as_chunks::<ROWS>().0.iter().zip(states) {
        let [input, forget, candidate, output] = gates.as_chunks::<HIDDEN>().0 else { unreachable!() };
        for unit in 0..HIDDEN {
            let c = sigmoid(forget[unit]) * cell[unit] + sigmoid(input[unit]) * tanh(candidate[unit]);
            cell[unit] = c;
            hidden[unit] = sigmoid(output[unit]) * tanh(c);
        }
    }
}

/// A bidirectional layer.
pub(super) struct Layer([Direction; 2]);

impl Layer {
    /// `widths` are the widths of the parts that the layer's input consists of.
    pub fn new(weights: &[LstmDirection; 2], widths: &[usize]) -> Self {
        Self([Direction::new(&weights[0], widths), Direction::new(&weights[1], widths)])
    }

    /// Runs both directions over `inputs`, each `[steps, windows, width]`.
    pub fn run(&self, inputs: &[&[f32]], windows: usize) -> Sequences {
        let (forward, reverse) =
            rayon::join(|| self.0[0].run(inputs, windows, false), || self.0[1].run(inputs, windows, true));
        [forward, reverse]
    }
}
