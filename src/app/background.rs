//! A thread that does one piece of work after another for a front end that must not wait: reading and writing files,
//! scoring. Depends on nothing in this crate.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Called from any thread when there is news.
pub type Wake = std::sync::Arc<dyn Fn() + Send + Sync>;

type Work<T> = Box<dyn FnOnce() -> T + Send>;

/// A thread and the pieces of work that wait for it, done in their order.
pub struct Background<T> {
    work: Option<Sender<Work<T>>>,
    done: Receiver<Result<T, String>>,
    thread: Option<JoinHandle<()>>,
    open: usize,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread; `wake` is called when a piece of work is done.
    pub fn start(name: &str, wake: Wake) -> Self {
        let (work, waiting) = channel::<Work<T>>();
        let (finished, done) = channel();
        let run = move || {
            for work in waiting {
                let result = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic));
                if finished.send(result).is_err() {
                    return;
                }
                wake();
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        let (thread, work) = match thread {
            Ok(thread) => (Some(thread), Some(work)),
            Err(error) => {
                tracing::error!("cannot start a thread: {error}");
                (None, None)
            }
        };
        Self { work, done, thread, open: 0 }
    }

    /// Adds a piece of work. What it returns comes out of [`Background::results`].
    pub fn add(&mut self, work: impl FnOnce() -> T + Send + 'static) {
        let sent = self.work.as_ref().is_some_and(|sender| sender.send(Box::new(work)).is_ok());
        self.open += usize::from(sent);
    }

    /// What has been done since the last call, in order; `Err` with the reason for work that panicked.
    pub fn results(&mut self) -> Vec<Result<T, String>> {
        let results: Vec<_> = self.done.try_iter().collect();
        self.open -= results.len();
        results
    }

    /// Pieces of work whose results have not been seen.
    pub fn open(&self) -> usize {
        self.open
    }
}

/// Waits until all work is done.
impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("internal error: {}", text.unwrap_or_else(|| "unknown".to_owned()))
}
