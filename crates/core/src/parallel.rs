//! How many threads a request may use, and the one way in which work is spread.
//!
//! Threads are scoped to the request: nothing outlives it, so a fork between requests copies no half-alive
//! pool, and one thread allowed means none started.

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

/// Runs `work` on the calling thread and up to `threads - 1` more. It is given what hands out the numbers below
/// `items` in order, each to one thread.
///
/// If the system gives no more threads, the work is done by those that there are.
pub fn on_threads(threads: usize, items: usize, work: impl Fn(&dyn Fn() -> Option<usize>) + Sync) {
    let count = AtomicUsize::new(0);
    let run = || work(&|| Some(count.fetch_add(1, Ordering::Relaxed)).filter(|&item| item < items));
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
