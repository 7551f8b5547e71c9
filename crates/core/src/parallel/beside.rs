//! Helpers run beside who called them, not behind.
//!
//! A thread that is woken may begin where its waker runs, and wait there until that is done or has had its turn, three
//! milliseconds, though another processor is idle: systems of virtual machines that gather threads on few processors, so
//! that the others may rest, do so with threads that have slept for a while. Measured on one of two processors: a
//! helper that had slept for 20 ms began after 1.9 ms in the median, and after 0.08 if it was forbidden the processor of
//! who called it.
//!
//! It is advice to the system: where it fails, nothing changes but speed.

use std::thread::JoinHandle;

/// Most processors of a machine on which helpers are told where not to run. With more, they seldom meet who calls them.
#[cfg(target_os = "linux")]
const MOST_CPUS: usize = 8;

/// A thread, and the processor that it is kept off.
#[derive(Debug)]
pub(super) struct Helper {
    thread: JoinHandle<()>,
    avoids: Option<usize>,
}

impl Helper {
    pub fn new(thread: JoinHandle<()>) -> Self {
        Helper { thread, avoids: None }
    }

    /// Whether this is the calling thread.
    pub fn is_me(&self) -> bool {
        self.thread.thread().id() == std::thread::current().id()
    }

    /// Keeps it off the processor `here`, which the calling thread runs on. The thread must not have ended.
    pub fn avoid(&mut self, here: Option<usize>) {
        if here.is_some() && self.avoids != here && here.is_some_and(|here| keep_off(&self.thread, here)) {
            self.avoids = here;
        }
    }
}

/// The processor that the calling thread runs on, if helpers are to avoid it.
#[cfg(target_os = "linux")]
pub(super) fn here() -> Option<usize> {
    if super::cpus() > MOST_CPUS {
        return None;
    }
    // SAFETY: it asks for nothing and touches no memory of ours.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Lets `thread` run on all processors that the calling thread may use, but for one.
#[cfg(target_os = "linux")]
fn keep_off(thread: &JoinHandle<()>, cpu: usize) -> bool {
    use std::os::unix::thread::JoinHandleExt;

    const SIZE: usize = std::mem::size_of::<libc::cpu_set_t>();
    if cpu >= 8 * SIZE {
        return false;
    }
    #[allow(clippy::unnecessary_cast, reason = "musl has a pointer for it")]
    let thread = thread.as_pthread_t() as libc::pthread_t;
    // SAFETY: a set of bits, for which zeros are the empty one; it lives as long as the calls, which are told its size. `cpu`
    // is one of its bits. The thread was started by us and is neither joined nor detached nor at its end, so its handle is valid.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, SIZE, &raw mut cpus) != 0 {
            return false;
        }
        libc::CPU_CLR(cpu, &mut cpus);
        libc::CPU_COUNT(&cpus) > 0 && libc::pthread_setaffinity_np(thread, SIZE, &raw const cpus) == 0
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn here() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
fn keep_off(_: &JoinHandle<()>, _: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_helper_is_never_where_it_may_not_be() {
        let cpus = super::super::num_threads();
        let (ask, asked) = channel::<()>();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            while asked.recv().is_ok() {
                tell.send(here()).unwrap();
            }
        });
        let mut helper = Helper::new(thread);
        assert!(!helper.is_me());
        for _ in 0..50 {
            let mine = here();
            helper.avoid(mine);
            ask.send(()).unwrap();
            let its = told.recv().unwrap();
            assert!(cpus < 2 || mine.is_none() || its != mine, "{its:?}");
            assert_eq!(helper.avoids.is_some(), cpus > 1 && mine.is_some());
        }
    }
}
