//! Turns: not more requests at work than there are processors, first come first served.
//!
//! Many threads that encode at once share few processors. Left to the system, some of them run several requests in a
//! row while others wait: half of all calls are quick, and the slowest take a hundred times as long. Here a request
//! that finds all processors busy waits in a queue; who is done wakes the first of it.
//!
//! A turn is only a courtesy, so nothing can hang on it: who waited `PATIENCE` goes ahead without one, and so does
//! whoever finds the queue locked by a thread that a fork left behind.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::parallel;

/// For how many turns it is remembered that one request more was at work.
const MEMORY: usize = 32;

/// Longest wait for a turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// One that waits.
#[derive(Debug)]
struct Waiter {
    thread: Thread,
    called: AtomicBool,
}

/// Who is at work, and who waits.
#[derive(Debug)]
struct Queue {
    at_work: usize,
    /// How many were at work lately, times [`MEMORY`].
    lately: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

/// A queue for turns.
#[derive(Debug)]
struct Turns(Mutex<Queue>);

static TURNS: Turns = Turns(Mutex::new(Queue { at_work: 0, lately: 0, waiting: VecDeque::new() }));

/// Runs `f` when it is its turn. `f` must not ask for another.
pub fn take<T>(f: impl FnOnce() -> T) -> T {
    let _turn = TURNS.wait(parallel::cpus(), PATIENCE);
    f()
}

/// Processors that no request is at work on nor was lately, the caller's own apart: a helper on the processor of one that is
/// about to ask again would be in its way.
#[must_use]
pub fn idle() -> usize {
    parallel::cpus().saturating_sub(TURNS.busy())
}

/// For the child of a fork: the threads that were at work or waiting do not exist there.
pub fn forget() {
    if let Some(mut queue) = TURNS.lock() {
        (queue.at_work, queue.lately) = (0, 0);
        queue.waiting.clear();
    }
}

/// A turn, until it is dropped.
struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(mut queue) = self.0.lock() else { return };
        match queue.waiting.pop_front() {
            // The turn goes over to the next.
            Some(next) => {
                drop(queue);
                next.called.store(true, Ordering::Release);
                next.thread.unpark();
            }
            None => queue.at_work = queue.at_work.saturating_sub(1),
        }
    }
}

impl Turns {
    /// A turn, or None if there was none to be had in time.
    fn wait(&self, most: usize, patience: Duration) -> Option<Turn<'_>> {
        let mut queue = self.lock()?;
        if queue.at_work < most {
            queue.at_work += 1;
            queue.lately = queue.lately.saturating_sub(1).max(queue.at_work * MEMORY);
            return Some(Turn(self));
        }
        let waiter = Arc::new(Waiter { thread: std::thread::current(), called: AtomicBool::new(false) });
        queue.waiting.push_back(waiter.clone());
        drop(queue);
        let start = Instant::now();
        while !waiter.called.load(Ordering::Acquire) {
            let Some(left) = patience.checked_sub(start.elapsed()) else { return self.leave(&waiter) };
            std::thread::park_timeout(left);
        }
        Some(Turn(self))
    }

    /// How many are at work or were lately; one at least.
    fn busy(&self) -> usize {
        self.lock().map_or(usize::MAX, |queue| queue.lately.div_ceil(MEMORY).max(1))
    }

    /// Stops waiting; but the turn may have come at this moment.
    fn leave(&self, waiter: &Arc<Waiter>) -> Option<Turn<'_>> {
        let mut queue = self.lock()?;
        match queue.waiting.iter().position(|other| Arc::ptr_eq(other, waiter)) {
            Some(place) => {
                queue.waiting.remove(place);
                None
            }
            None => Some(Turn(self)),
        }
    }

    /// The queue; None if it stays locked, which no living thread does for long.
    fn lock(&self) -> Option<MutexGuard<'_, Queue>> {
        for tries in 0..10_000 {
            match self.0.try_lock() {
                Ok(queue) => return Some(queue),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if tries < 100 => std::hint::spin_loop(),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn turns() -> Turns {
        Turns(Mutex::new(Queue { at_work: 0, lately: 0, waiting: VecDeque::new() }))
    }

    #[test]
    fn no_more_than_allowed_are_at_work_and_all_get_a_turn() {
        let (turns, at_work, most, done) = (turns(), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let turn = turns.wait(3, Duration::from_secs(60));
                        assert!(turn.is_some());
                        most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::hint::black_box(&turn);
                        at_work.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 3200);
        assert!((1..=3).contains(&most.into_inner()));
        let queue = turns.0.into_inner().unwrap();
        assert_eq!((queue.at_work, queue.waiting.len()), (0, 0));
    }

    #[test]
    fn first_come_first_served() {
        let (turns, order) = (turns(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let first = turns.wait(1, PATIENCE);
            for number in 0..5 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.wait(1, Duration::from_secs(60));
                    order.lock().unwrap().push(number);
                });
                while turns.0.lock().unwrap().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn it_is_remembered_for_a_while_that_more_were_at_work() {
        let turns = turns();
        let take = || turns.wait(3, PATIENCE);
        assert_eq!(turns.busy(), 1);
        drop(take());
        assert_eq!(turns.busy(), 1);
        drop((take(), take(), take()));
        assert_eq!(turns.busy(), 3);
        (0..MEMORY).for_each(|_| drop(take()));
        assert_eq!(turns.busy(), 2);
        (0..MEMORY).for_each(|_| drop(take()));
        assert_eq!(turns.busy(), 1);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let turns = turns();
        let first = turns.wait(1, PATIENCE);
        assert!(first.is_some());
        assert!(turns.wait(1, Duration::from_millis(1)).is_none());
        assert!(turns.0.lock().unwrap().waiting.is_empty());
        drop(first);
        assert!(turns.wait(1, PATIENCE).is_some());
        // A lock that nobody will open.
        let locked = turns.0.lock().unwrap();
        assert!(turns.wait(1, PATIENCE).is_none());
        drop(locked);
    }
}
