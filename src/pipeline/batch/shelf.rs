//! What decoders put down and engines take. Bounds how many recordings and samples are in memory.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Feed, Item, Limits, Next, Observer};
use crate::audio::{SourceFacts, Waveform};

/// How often a waiting thread looks for a cancellation or a new recording, which nothing signals to it.
const PATIENCE: Duration = Duration::from_millis(50);

/// The recordings between decoders and engines.
pub(super) struct Shelf<'a> {
    feed: &'a dyn Feed,
    limits: Limits,
    observer: &'a dyn Observer,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next item, taken out of the feed, waiting for room.
    next: Option<Item>,
    /// Whether the feed has ended.
    ended: bool,
    /// Number of items being decoded.
    decoding: usize,
    /// Engines that have not failed.
    engines: usize,
    /// Items in an engine, which may come back.
    working: usize,
    /// Items waiting for an engine.
    ready: VecDeque<Decoded>,
    /// Samples in memory: guessed ones of items being decoded, true ones of items waiting or in an engine.
    held: u64,
    /// Items taken out of the feed whose results have not been seen.
    unfinished: BTreeSet<usize>,
}

/// The samples reserved for an item that is being decoded.
pub(super) struct Claim {
    reserved: u64,
}

/// An item that waits for an engine or is in one.
pub(super) struct Decoded {
    pub item: Item,
    /// The mixed channel, or all channels.
    pub channels: Vec<Waveform>,
    pub decoding: Duration,
}

impl Decoded {
    fn samples(&self) -> u64 {
        self.channels.iter().map(|channel| channel.samples.len() as u64).sum()
    }
}

impl<'a> Shelf<'a> {
    pub fn new(feed: &'a dyn Feed, limits: &Limits, engines: usize, observer: &'a dyn Observer) -> Self {
        let state = Mutex::new(State { engines, ..State::default() });
        Self { feed, limits: *limits, observer, state, changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` gives an answer; `None` if the batch is stopped.
    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> ControlFlow<Option<T>>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if self.observer.stopped() {
                return None;
            }
            if let ControlFlow::Break(answer) = ready(&mut state) {
                self.changed.notify_all();
                return answer;
            }
            state = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next item to decode, once there is room for it; `None` if none will come.
    pub fn claim(&self) -> Option<(Item, Claim)> {
        self.wait(|state| {
            // An item that waits for room has been taken out, so there is room for one more only when it is gone.
            let ahead = state.decoding + state.ready.len();
            if ahead > 0 && ahead >= 2 * self.limits.decoders {
                return ControlFlow::Continue(());
            }
            if state.next.is_none() && !state.ended {
                match self.feed.next() {
                    Next::Item(item) => {
                        state.unfinished.insert(item.id);
                        state.next = Some(item);
                    }
                    Next::Later => {}
                    Next::End => state.ended = true,
                }
            }
            let Some(item) = state.next.take() else {
                return if state.ended { ControlFlow::Break(None) } else { ControlFlow::Continue(()) };
            };
            let reserved = item.guess();
            if state.held.saturating_add(reserved) > self.limits.samples && (state.held > 0 || ahead > 0) {
                state.next = Some(item);
                return ControlFlow::Continue(());
            }
            state.decoding += 1;
            state.held += reserved;
            ControlFlow::Break(Some((item, Claim { reserved })))
        })
    }

    pub fn deliver(&self, claim: Claim, decoded: Decoded) {
        let mut state = self.lock();
        state.held = state.held - claim.reserved + decoded.samples();
        state.decoding -= 1;
        state.ready.push_back(decoded);
        self.changed.notify_all();
    }

    pub fn give_up(&self, claim: Claim) {
        let mut state = self.lock();
        state.held -= claim.reserved;
        state.decoding -= 1;
        self.changed.notify_all();
    }

    /// The next item to diarize; `None` if none will come any more.
    pub fn take(&self) -> Option<Decoded> {
        self.wait(|state| match state.ready.pop_front() {
            Some(decoded) => {
                state.working += 1;
                ControlFlow::Break(Some(decoded))
            }
            None if state.ended && state.next.is_none() && state.decoding == 0 && state.working == 0 => {
                ControlFlow::Break(None)
            }
            None => ControlFlow::Continue(()),
        })
    }

    /// Whether an engine whose device failed may stop because there are others.
    pub fn retires(&self) -> bool {
        let mut state = self.lock();
        let others = state.engines > 1;
        state.engines -= usize::from(others);
        others
    }

    /// Gives an item back for another engine.
    pub fn put_back(&self, decoded: Decoded) {
        let mut state = self.lock();
        state.working -= 1;
        state.ready.push_front(decoded);
        self.changed.notify_all();
    }

    /// Forgets an item that an engine is done with; what it was decoded from stays.
    pub fn release(&self, decoded: Decoded) -> SourceFacts {
        let samples = decoded.samples();
        let source = decoded.channels.into_iter().next().map(|channel| channel.source).unwrap_or_default();
        let mut state = self.lock();
        state.held -= samples;
        state.working -= 1;
        self.changed.notify_all();
        source
    }

    /// The result of an item has been seen.
    pub fn finished(&self, item: usize) {
        self.lock().unfinished.remove(&item);
    }

    /// Items whose results have not been seen.
    pub fn unfinished(&self) -> Vec<usize> {
        self.lock().unfinished.iter().copied().collect()
    }
}
