//! How many threads a request may use, and the one way in which work is spread.
//!
//! Threads are scoped to the request: nothing outlives it, so a fork between requests copies no half-alive
//! pool, and one thread allowed means none started.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// 0: not set, use the CPUs that this process may use.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Most threads that one request may use; 0 restores the default.
pub fn set_num_threads(n: usize) {
    LIMIT.store(n, Ordering::Relaxed);
}

/// Most threads that one request may use: what was set, or the CPUs that this process may run on.
#[must_use]
pub fn num_threads() -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}

/// Runs `work` on every item, on the calling thread and up to `threads - 1` more, in order of the iterator.
///
/// If the system gives no more threads, the work is done by those that there are.
pub fn for_each<T: Send>(threads: usize, items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    if threads <= 1 {
        return run();
    }
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().name("kizami".into()).spawn_scoped(scope, run).ok();
        let started: Vec<_> = (1..threads).map_while(start).collect();
        run();
        // The end of the scope would wait for the work only, not for the threads to be gone.
        for thread in started {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
