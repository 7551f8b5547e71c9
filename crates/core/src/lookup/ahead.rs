//! Memory that is brought in ahead, by a helper, while requests go on.
//!
//! A huge page that nobody had yet is filled with zeros by the system, and in a virtual machine has to be found first:
//! half a millisecond to five were measured, for each of the six that a cache takes when it grows. So whoever wants to
//! grow asks here, goes on as it is, and takes the memory when it has come. It is the same for all vocabularies, and for
//! all who ask for as much.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::parallel;
use crate::table::Zeros;

/// What has come and was not taken yet.
static READY: Mutex<Vec<(usize, Zeros)>> = Mutex::new(Vec::new());

/// Has `len` bytes of zeros brought in. False if no helper is there to do it: small requests start none.
pub(super) fn ask(len: usize) -> bool {
    parallel::errand(move || {
        let Ok(zeros) = Zeros::new(len) else { return };
        zeros.bring_in();
        if let Some(mut ready) = ready() {
            ready.push((len, zeros));
        }
    })
}

/// `len` bytes of zeros, if they have come.
pub(super) fn take(len: usize) -> Option<Zeros> {
    let mut ready = ready()?;
    let place = ready.iter().position(|other| other.0 == len)?;
    Some(ready.swap_remove(place).1)
}

/// None if somebody else is at it: perhaps for ever, in the child of a fork.
fn ready() -> Option<MutexGuard<'static, Vec<(usize, Zeros)>>> {
    for _ in 0..64 {
        match READY.try_lock() {
            Ok(ready) => return Some(ready),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_comes() {
        // So that there is a helper, if there may be one.
        parallel::on_threads(2, 2, |next| while next().is_some() {});
        let len = (3 << 20) + 4096;
        if !ask(len) {
            return;
        }
        let zeros = (0..10_000).find_map(|_| {
            assert!(take(len - 4096).is_none(), "only what has the length");
            std::thread::sleep(std::time::Duration::from_millis(1));
            take(len)
        });
        let zeros = zeros.expect("it has come within ten seconds");
        assert_eq!(zeros.view::<u64>(0..len).len(), len / 8);
        assert!(zeros.view::<u64>(0..len).iter().all(|&word| word == 0));
        assert!(take(len).is_none());
    }
}
