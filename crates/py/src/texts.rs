//! The texts of tokens as Python has them: made when they are first wanted, and then handed out again and again.
//!
//! A token that is whole characters has one text. A part of a character gives a text that depends on what waits for it: that is
//! kept as a step, from a state of a stream and an id to a text and the next state.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use kizami_core::Unfinished;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Tokens whose texts are found together; room for them is made when the first of them is wanted.
const PAGE: usize = 512;

/// `str` objects that are held, or null: 8 bytes each, since to look for one is most of what it costs.
struct Page([AtomicPtr<PyObject>; PAGE]);

impl Drop for Page {
    fn drop(&mut self) {
        for slot in &mut self.0 {
            release(slot);
        }
    }
}

/// Places for steps: 24 bytes each, and a `str` of about 80 if it is taken.
const STEPS: usize = 8192;
/// Places where one step may be; if others have them all, it is not kept.
const PROBES: usize = 4;

/// A step that is kept. Once set, it never changes.
#[derive(Default)]
struct StepSlot {
    /// Id and state before; 0 if the place is free.
    key: AtomicU64,
    /// State afterwards; set before `text` is.
    next: AtomicU32,
    /// A `str` that is held, or null if it is being set.
    text: AtomicPtr<PyObject>,
}

impl Drop for StepSlot {
    fn drop(&mut self) {
        release(&mut self.text);
    }
}

/// Gives back the `str` that a place held.
fn release(slot: &mut AtomicPtr<PyObject>) {
    let text = std::mem::replace(slot.get_mut(), ptr::null_mut());
    // SAFETY: null, or a reference that `TokenTexts` put there for this moment. Who drops a tokenizer is attached.
    drop(unsafe { Bound::from_owned_ptr_or_opt(Python::assume_attached(), text) });
}

/// The texts of tokens: by id, of each token that was asked for and that is text on its own, whole characters and no control
/// token; at most one `str` a token, about 60 bytes. And some steps, at most a megabyte.
pub struct TokenTexts {
    whole: Box<[OnceLock<Box<Page>>]>,
    steps: OnceLock<Box<[StepSlot]>>,
}

impl TokenTexts {
    /// For ids below `vocab_size`. None is made yet.
    pub fn new(vocab_size: u32) -> Self {
        let pages = usize::try_from(vocab_size).map_or(0, |size| size.div_ceil(PAGE));
        TokenTexts { whole: (0..pages).map(|_| OnceLock::new()).collect(), steps: OnceLock::new() }
    }

    /// The text of an id where nothing waits, if it is kept.
    #[inline]
    pub fn get<'a, 'py>(&'a self, py: Python<'py>, id: u32) -> Option<Borrowed<'a, 'py, PyString>> {
        let id = usize::try_from(id).ok()?;
        let text = self.whole.get(id / PAGE)?.get()?.0[id % PAGE].load(Ordering::Acquire);
        // SAFETY: null, or a `str` that `keep` put there, which is held as long as `self`.
        unsafe { Some(Borrowed::from_ptr_or_opt(py, text)?.cast_unchecked()) }
    }

    /// Keeps the text of an id where nothing waits, from now on, unless one is kept already.
    pub fn keep(&self, id: u32, text: &Bound<'_, PyString>) {
        let Ok(id) = usize::try_from(id) else { return };
        let Some(page) = self.whole.get(id / PAGE) else { return };
        let page = page.get_or_init(|| Box::new(Page([const { AtomicPtr::new(ptr::null_mut()) }; PAGE])));
        let owned = text.clone();
        let (slot, null) = (&page.0[id % PAGE], ptr::null_mut());
        if slot.compare_exchange(null, owned.as_ptr(), Ordering::Release, Ordering::Relaxed).is_ok() {
            // Held by the slot.
            std::mem::forget(owned);
        }
    }

    /// The text of an id in a state ([`Unfinished::to_bits`]), and the next state, if that is kept.
    #[inline]
    pub fn step<'a, 'py>(&'a self, py: Python<'py>, state: u32, id: u32) -> Option<(Borrowed<'a, 'py, PyString>, u32)> {
        let key = key(state, id);
        let steps = self.steps.get()?;
        let slot = places(steps, key).find(|slot| slot.key.load(Ordering::Relaxed) == key)?;
        let text = slot.text.load(Ordering::Acquire);
        // SAFETY: null, or a `str` that `keep_step` put there, which is held as long as `self`.
        let text = unsafe { Borrowed::from_ptr_or_opt(py, text)?.cast_unchecked() };
        Some((text, slot.next.load(Ordering::Relaxed)))
    }

    /// Keeps a step from now on, if it is not kept already and there is a place.
    pub fn keep_step(&self, state: Unfinished, id: u32, text: &Bound<'_, PyString>, next: Unfinished) {
        let key = key(state.to_bits(), id);
        let steps = self.steps.get_or_init(|| (0..STEPS).map(|_| StepSlot::default()).collect());
        for slot in places(steps, key) {
            match slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    slot.next.store(next.to_bits(), Ordering::Relaxed);
                    slot.text.store(text.clone().into_ptr(), Ordering::Release);
                    return;
                }
                Err(other) if other == key => return,
                Err(_) => {}
            }
        }
    }
}

/// A step as a number that is not 0: no state has the uppermost bit.
fn key(state: u32, id: u32) -> u64 {
    u64::from(id) << 32 | u64::from(state) | 1 << 31
}

/// Places where a step may be.
#[inline]
fn places(steps: &[StepSlot], key: u64) -> impl Iterator<Item = &StepSlot> {
    // The upper bits of a product depend on all bits of the key.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = usize::try_from(hash).unwrap_or(0);
    (0..PROBES).map(move |probe| &steps[(first + probe) % STEPS])
}
