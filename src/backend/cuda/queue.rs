//! Segmentation of several recordings at a time: windows of all that wait fill a batch. Depends on `segmenter`.
//!
//! There is no thread for it. Whoever holds the GPU while its own windows wait works on everybody's ([`Flight::serve`]),
//! in order of arrival. What comes out for a window does not depend on the others of its batch.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::CudaError;
use super::launch::{Buffer, Gpu, Pending};
use super::segmenter::{Part, Segmenter};
use crate::models::windows::WINDOW_FRAMES;

/// First window and the classes of every frame of it and those that follow, or why there are none.
pub type Reply = Result<(usize, Vec<u8>), String>;

/// Windows of one recording that wait.
pub struct Request {
    /// Tells the recordings apart.
    pub id: u64,
    /// Its samples on the GPU.
    pub audio: Buffer,
    /// Their number.
    pub samples: usize,
    /// Samples from one window to the next; window w begins at sample `w * step`.
    pub step: usize,
    /// First window that is not in work yet, and the end.
    pub windows: std::ops::Range<usize>,
    /// Where the classes go.
    pub reply: Sender<Reply>,
}

/// What waits on one GPU.
#[derive(Default)]
pub struct Queue {
    requests: Mutex<VecDeque<Request>>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds windows.
    pub fn push(&self, request: Request) {
        self.lock().push_back(request);
    }

    /// Forgets what waits of a recording.
    pub fn remove(&self, id: u64) {
        self.lock().retain(|request| request.id != id);
    }

    /// Takes the windows of the next batch.
    fn next(&self, segmenter: &Segmenter) -> Vec<Taken> {
        let (mut requests, mut taken, mut room) = (self.lock(), Vec::new(), segmenter.batch());
        while room > 0
            && let Some(request) = requests.front_mut()
        {
            let count = request.windows.len().min(room).min(segmenter.most(request.step));
            let first = request.windows.start;
            let Request { samples, step, .. } = *request;
            let (audio, reply) = (request.audio.clone(), request.reply.clone());
            taken.push(Taken { audio, samples, step, first, count, reply });
            request.windows.start += count;
            room -= count;
            if request.windows.is_empty() {
                requests.pop_front();
            }
        }
        taken
    }
}

/// Windows in work.
struct Taken {
    audio: Buffer,
    samples: usize,
    step: usize,
    first: usize,
    count: usize,
    reply: Sender<Reply>,
}

/// The batch that the GPU works on, while the next one is made ready.
#[derive(Default)]
pub struct Flight(Option<(Pending, Vec<Taken>)>);

impl Flight {
    /// Starts the next batch, if anything waits, and hands over the results of the one before.
    ///
    /// A failure goes to the recordings that it concerns. A receiver that is gone wanted no result any more.
    pub fn serve(&mut self, queue: &Queue, segmenter: &mut Segmenter, gpu: &mut Gpu) {
        let taken = queue.next(segmenter);
        let parts: Vec<Part<'_>> = taken.iter().map(Taken::part).collect();
        let started = if parts.is_empty() { None } else { Some(segmenter.classes(gpu, &parts)) };
        if let Some((pending, taken)) = self.0.take() {
            match gpu.collect::<u8>(pending) {
                Ok(classes) => {
                    let mut rest = classes.as_slice();
                    for Taken { first, count, reply, .. } in taken {
                        let (classes, others) = rest.split_at(count * WINDOW_FRAMES);
                        rest = others;
                        let _ = reply.send(Ok((first, classes.to_vec())));
                    }
                }
                Err(error) => fail(taken, &error),
            }
        }
        match started {
            Some(Ok(pending)) => self.0 = Some((pending, taken)),
            Some(Err(error)) => fail(taken, &error),
            None => {}
        }
    }
}

impl Taken {
    fn part(&self) -> Part<'_> {
        let Self { audio, samples, step, first, count, .. } = self;
        Part { audio, samples: *samples, first: first * step, step: *step, count: *count }
    }
}

fn fail(taken: Vec<Taken>, error: &CudaError) {
    for Taken { reply, .. } in taken {
        let _ = reply.send(Err(error.to_string()));
    }
}
