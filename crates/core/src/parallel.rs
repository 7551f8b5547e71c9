//! How many threads a request may use, and the one way in which work is spread.
//!
//! Helpers are threads that wait for work; they are started when they are first needed, and then stay. Whoever has work
//! to spread does it himself, too, and waits for those helpers only that have begun to help. So nothing hangs on a
//! helper that does not come: not where the system gives no more threads, nor in the child of a fork, where there
//! are none of them.

mod beside;

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use beside::Helper;

/// 0: not set, use the CPUs that this process may use.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// What [`cpus`] knows; 0: nothing yet.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// How often what [`cpus`] knows is used before the system is asked again.
const ASK_AGAIN: usize = 256;

/// How long whoever waits for helpers looks before he sleeps: to be woken takes 50 to 150 microseconds.
const PATIENCE: Duration = Duration::from_micros(150);

/// Most threads that one request may use; 0 restores the default.
pub fn set_num_threads(n: usize) {
    LIMIT.store(n, Ordering::Relaxed);
}

/// Most threads that one request may use: what was set, or the CPUs that this process may run on. Asks the system.
#[must_use]
pub fn num_threads() -> usize {
    limit_or(ask_for_cpus)
}

/// The same for the way of a request: with [`cpus`].
pub(crate) fn limit() -> usize {
    limit_or(cpus)
}

fn limit_or(cpus: fn() -> usize) -> usize {
    match LIMIT.load(Ordering::Relaxed) {
        0 => cpus(),
        n => n,
    }
}

thread_local! {
    /// Whether this thread is a helper, which may not run everywhere ([`beside`]): it must not ask for all.
    static IS_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// The CPUs that this process may run on, as of a short while ago: to ask the system takes 40 microseconds.
#[must_use]
pub fn cpus() -> usize {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 && !ASKED.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASK_AGAIN) {
        return known;
    }
    ask_for_cpus()
}

fn ask_for_cpus() -> usize {
    if IS_HELPER.get() {
        return KNOWN.load(Ordering::Relaxed).max(1);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    KNOWN.store(cpus, Ordering::Relaxed);
    cpus
}

/// Runs `work` on the calling thread and on up to `threads - 1` helpers. It is given what hands out the numbers below
/// `items` in order, each to one thread.
pub fn on_threads(threads: usize, items: usize, work: impl Fn(&dyn Fn() -> Option<usize>) + Sync) {
    let count = AtomicUsize::new(0);
    let next = || Some(count.fetch_add(1, Ordering::Relaxed)).filter(|&item| item < items);
    let run = || work(&next);
    if threads <= 1 { run() } else { with_helpers(threads - 1, &run) }
}

/// What `a` and `b` give, which run at the same time if a request may use two threads.
pub fn both<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if limit() <= 1 {
        return (a(), b());
    }
    let (a, b) = (Mutex::new(Once::Before(a)), Mutex::new(Once::Before(b)));
    on_threads(2, 2, |next| {
        while let Some(item) = next() {
            if item == 0 { Once::run(&a) } else { Once::run(&b) }
        }
    });
    (Once::after(a), Once::after(b))
}

/// What is called once, and then what it gave.
enum Once<F, T> {
    Before(F),
    Running,
    After(T),
}

impl<T, F: FnOnce() -> T> Once<F, T> {
    fn run(this: &Mutex<Self>) {
        // Nobody else has this item: the lock is free, before and after.
        let mut this = this.lock().unwrap_or_else(PoisonError::into_inner);
        if let Once::Before(run) = std::mem::replace(&mut *this, Once::Running) {
            *this = Once::After(run());
        }
    }

    fn after(this: Mutex<Self>) -> T {
        match this.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Once::After(value) => value,
            _ => unreachable!("every item is done once, and a panic is passed on"),
        }
    }
}

/// For the child of a fork: there are no helpers any more.
pub fn forget() {
    // Not freed: another thread may have been reading it when the process was forked.
    POOL.store(std::ptr::null_mut(), Ordering::Release);
}

/// Work that helpers may join as long as it is open.
struct Shared {
    /// Valid while the work is open or somebody is at it: its owner waits for that.
    run: &'static (dyn Fn() + Sync),
    state: Mutex<State>,
    changed: Condvar,
    /// As in the state, for who does not want to lock it.
    helping: AtomicUsize,
}

struct State {
    open: bool,
    helping: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Helps, if that is still wanted.
    fn help(&self) {
        {
            let mut state = self.state();
            if !state.open {
                return;
            }
            state.helping += 1;
            self.helping.store(state.helping, Ordering::Release);
        }
        let outcome = catch_unwind(AssertUnwindSafe(self.run));
        let mut state = self.state();
        state.helping -= 1;
        self.helping.store(state.helping, Ordering::Release);
        if let Err(panic) = outcome {
            state.panic.get_or_insert(panic);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Lets nobody join any more, and waits for those who have.
    fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.state();
        state.open = false;
        if state.helping > 0 && limit() > 1 {
            // Most of the time they are at their last item: to sleep and be woken would take longer.
            drop(state);
            let start = Instant::now();
            while self.helping.load(Ordering::Acquire) > 0 && start.elapsed() < PATIENCE {
                for _ in 0..32 {
                    std::hint::spin_loop();
                }
            }
            state = self.state();
        }
        while state.helping > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }
}

/// Has a helper run `errand` when nobody wants its help. False if there is none (none is started for that), or if a request may
/// use one thread only.
pub(crate) fn errand(errand: impl FnOnce() + Send + 'static) -> bool {
    limit() > 1 && pool().send(Box::new(errand))
}

/// The helpers' inbox: one entry for each helper that is wanted.
struct Pool {
    /// The process that has these helpers. The child of a fork has none of them, even if nobody called [`forget`] there.
    process: u32,
    inbox: Mutex<Inbox>,
    wanted: Condvar,
}

type Errand = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inbox {
    calls: VecDeque<Arc<Shared>>,
    errands: VecDeque<Errand>,
    /// Helpers that those who are at work have asked for.
    wanted: usize,
    /// Helpers that were started. One that ends takes itself away first.
    helpers: Vec<Helper>,
    /// Of these, the ones that wait.
    waiting: usize,
    /// And the ones that are on an errand.
    on_errands: usize,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// The pool, made at the first call. It lives as long as the process.
fn pool() -> &'static Pool {
    let known = POOL.load(Ordering::Acquire);
    // SAFETY: null, or a pointer that came from a box that is never freed.
    let is_ours = unsafe { known.as_ref() }.is_some_and(|pool| pool.process == std::process::id());
    let pool = if !is_ours {
        let fresh = Box::into_raw(Box::new(Pool::of_this_process()));
        match POOL.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            // Another thread was faster; ours is lost, 100 bytes.
            Err(other) => other,
        }
    } else {
        known
    };
    // SAFETY: the pointer came from a box that is never freed.
    unsafe { &*pool }
}

impl Pool {
    fn of_this_process() -> Self {
        Pool { process: std::process::id(), inbox: Mutex::default(), wanted: Condvar::new() }
    }

    /// The inbox; None if it stays locked, as it may in the child of a fork.
    fn inbox(&self) -> Option<MutexGuard<'_, Inbox>> {
        for tries in 0..10_000 {
            match self.inbox.try_lock() {
                Ok(inbox) => return Some(inbox),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if tries < 100 => std::hint::spin_loop(),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// Asks for `helpers`, starting as many as are missing. False if nobody was asked.
    fn call(&'static self, helpers: usize, shared: &Arc<Shared>) -> bool {
        let Some(mut inbox) = self.inbox() else { return false };
        inbox.calls.extend(std::iter::repeat_n(shared, helpers).cloned());
        // Who is on an errand comes afterwards, if help is wanted then.
        let there = inbox.waiting + inbox.on_errands;
        // Not more than all who are at work want: one that has just done its part does not wait yet, but will.
        inbox.wanted += helpers;
        let allowed = inbox.wanted.saturating_sub(inbox.helpers.len());
        let missing = inbox.calls.len().saturating_sub(there).min(helpers).min(allowed);
        for _ in 0..missing {
            let started = std::thread::Builder::new().name("kizami".into()).spawn(|| self.serve());
            let Ok(thread) = started else { break };
            inbox.helpers.push(Helper::new(thread));
        }
        let here = beside::here();
        inbox.helpers.iter_mut().filter(|helper| !helper.is_me()).for_each(|helper| helper.avoid(here));
        drop(inbox);
        for _ in 0..helpers {
            self.wanted.notify_one();
        }
        true
    }

    /// Hands an errand to the helper that comes first; false if there is none.
    fn send(&self, errand: Errand) -> bool {
        let Some(mut inbox) = self.inbox() else { return false };
        if inbox.helpers.is_empty() {
            return false;
        }
        inbox.errands.push_back(errand);
        drop(inbox);
        self.wanted.notify_one();
        true
    }

    /// Takes back the calls for `helpers` that nobody has answered.
    fn call_off(&self, helpers: usize, shared: &Arc<Shared>) {
        if let Some(mut inbox) = self.inbox() {
            inbox.wanted -= helpers;
            inbox.calls.retain(|call| !Arc::ptr_eq(call, shared));
        }
    }

    /// The life of a helper.
    fn serve(&self) {
        IS_HELPER.set(true);
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while let Some(call) = inbox.calls.pop_front() {
                drop(inbox);
                call.help();
                drop(call);
                inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(errand) = inbox.errands.pop_front() {
                inbox.on_errands += 1;
                drop(inbox);
                // Nobody waits for it, so nobody is told.
                let _ = catch_unwind(AssertUnwindSafe(errand));
                inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
                inbox.on_errands -= 1;
                continue;
            }
            // More than the CPUs need not wait.
            if inbox.waiting > cpus() {
                inbox.helpers.retain(|helper| !helper.is_me());
                return;
            }
            inbox.waiting += 1;
            inbox = self.wanted.wait(inbox).unwrap_or_else(PoisonError::into_inner);
            inbox.waiting -= 1;
        }
    }
}

/// Runs `run` on the calling thread and on up to so many helpers.
fn with_helpers(helpers: usize, run: &(dyn Fn() + Sync)) {
    // SAFETY: only the lifetime changes. `close` below returns when nobody is at the work and nobody can join, and it
    // is reached whatever happens: a panic of our own share is caught before.
    let erased = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(run) };
    let state = Mutex::new(State { open: true, helping: 0, panic: None });
    let shared = Arc::new(Shared { run: erased, state, changed: Condvar::new(), helping: AtomicUsize::new(0) });
    let pool = pool();
    let called = pool.call(helpers, &shared);
    let own = catch_unwind(AssertUnwindSafe(run));
    let theirs = shared.close();
    if called {
        pool.call_off(helpers, &shared);
    }
    if let Some(panic) = own.err().or(theirs) {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held by tests in which a helper must come, or which ask for many.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn every_item_is_done_once() {
        for threads in [1, 2, 3, 17] {
            for items in [0, 1, 2, 1000] {
                let done: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                on_threads(threads, items, |next| {
                    while let Some(item) = next() {
                        done[item].fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "{threads} {items}");
            }
        }
    }

    #[test]
    fn both_results_come_back() {
        for n in 0..100 {
            assert_eq!(both(|| n, || vec![n; 3]), (n, vec![n; 3]));
        }
        let (inner, outer) = both(|| both(|| 1, || 2), || 3);
        assert_eq!((inner, outer), ((1, 2), 3));
        for at in 0..2 {
            let outcome = catch_unwind(|| both(|| assert!(at != 0, "first"), || assert!(at != 1, "second")));
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn helpers_come_and_are_kept() {
        let _alone = with_a_helper();
        let names = Mutex::new(Vec::new());
        let wait = std::sync::Barrier::new(2);
        for _ in 0..3 {
            with_helpers(1, &|| {
                wait.wait();
                names.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
            });
        }
        let names = names.into_inner().unwrap();
        assert_eq!(names.iter().filter(|name| name.as_deref() == Some("kizami")).count(), 3);
    }

    #[test]
    fn a_helper_that_may_not_run_everywhere_does_not_count_the_cpus() {
        let _alone = with_a_helper();
        let all = num_threads();
        let both = std::sync::Barrier::new(2);
        with_helpers(1, &|| {
            both.wait();
            (0..2 * ASK_AGAIN).for_each(|_| assert!(cpus() > 0));
            both.wait();
        });
        assert_eq!((KNOWN.load(Ordering::Relaxed), num_threads()), (all, all));
    }

    /// Has a helper, and nobody else who asks for one.
    fn with_a_helper() -> MutexGuard<'static, ()> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        with_helpers(1, &|| ());
        alone
    }

    #[test]
    fn errands_are_run_and_those_that_fail_hurt_nobody() {
        let _alone = with_a_helper();
        let (tell, told) = std::sync::mpsc::channel();
        for number in 0..20 {
            let tell = tell.clone();
            let sent = pool().send(Box::new(move || {
                assert!(number % 3 != 0, "every third");
                tell.send(number).unwrap();
            }));
            assert!(sent);
        }
        drop(tell);
        let mut done: Vec<i32> = told.iter().collect();
        done.sort_unstable();
        assert_eq!(done, (0..20).filter(|number| number % 3 != 0).collect::<Vec<_>>());
    }

    #[test]
    fn for_an_errand_no_helper_is_started_nor_for_those_that_run_one() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::of_this_process()));
        assert!(!pool.send(Box::new(|| ())));
        let shared = |run: &'static (dyn Fn() + Sync)| {
            let state = Mutex::new(State { open: true, helping: 0, panic: None });
            Arc::new(Shared { run, state, changed: Condvar::new(), helping: AtomicUsize::new(0) })
        };
        let first = shared(&|| ());
        assert!(pool.call(1, &first));
        let (begin, begun) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        assert!(pool.send(Box::new(move || {
            begin.send(()).unwrap();
            ended.recv().unwrap();
        })));
        begun.recv().unwrap();
        let call = shared(&|| ());
        assert!(pool.call(1, &call));
        assert_eq!(pool.inbox.lock().unwrap().helpers.len(), 1);
        // Calls come before errands, and are answered in the end.
        end.send(()).unwrap();
        while pool.inbox.lock().unwrap().waiting == 0 {
            std::thread::yield_now();
        }
        assert!(call.close().is_none());
        assert!(first.close().is_none());
        assert!(pool.inbox.lock().unwrap().calls.is_empty());
        pool.call_off(1, &first);
        pool.call_off(1, &call);
        assert_eq!(pool.inbox.lock().unwrap().wanted, 0);
    }

    #[test]
    fn many_callers_at_once() {
        let _alone = with_a_helper();
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        on_threads(4, 10, |next| {
                            while next().is_some() {
                                total.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 8 * 200 * 10);
    }

    #[test]
    fn a_panic_arrives_and_the_helpers_go_on() {
        for threads in [1, 2, 4] {
            let outcome = catch_unwind(|| on_threads(threads, 8, |next| assert!(next() != Some(5), "five")));
            assert!(threads > 1 || outcome.is_ok());
            let outcome = catch_unwind(|| {
                on_threads(threads, 8, |next| {
                    while let Some(item) = next() {
                        assert!(item != 5, "five");
                    }
                });
            });
            assert!(outcome.is_err());
        }
        every_item_is_done_once();
    }

    #[test]
    fn without_an_answer_the_caller_does_it_all() {
        // As after a fork: an inbox that nobody serves, and one that is locked for ever.
        let pool: &'static Pool = Box::leak(Box::new(Pool::of_this_process()));
        let shared = Arc::new(Shared {
            run: &|| (),
            state: Mutex::new(State { open: true, helping: 0, panic: None }),
            changed: Condvar::new(),
            helping: AtomicUsize::new(0),
        });
        let locked = pool.inbox.lock().unwrap();
        assert!(!pool.call(1, &shared));
        assert!(shared.close().is_none());
        drop(locked);
        assert!(pool.inbox.lock().unwrap().helpers.is_empty());
    }
}
