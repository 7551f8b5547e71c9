//! The texts of tokens as Python has them: made when they are first wanted, and then handed out again and again.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

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
            let text = std::mem::replace(slot.get_mut(), ptr::null_mut());
            // SAFETY: null, or a reference that `keep` put there for this moment. Who drops a tokenizer is attached.
            drop(unsafe { Bound::from_owned_ptr_or_opt(Python::assume_attached(), text) });
        }
    }
}

/// By id, the text of each token that was asked for and that is text on its own: whole characters, and no control token.
/// At most one `str` a token, about 60 bytes.
pub struct TokenTexts(Box<[OnceLock<Box<Page>>]>);

impl TokenTexts {
    /// For ids below `vocab_size`. None is made yet.
    pub fn new(vocab_size: u32) -> Self {
        let pages = usize::try_from(vocab_size).map_or(0, |size| size.div_ceil(PAGE));
        TokenTexts((0..pages).map(|_| OnceLock::new()).collect())
    }

    /// The text of an id, if it is kept.
    #[inline]
    pub fn get<'a, 'py>(&'a self, py: Python<'py>, id: u32) -> Option<Borrowed<'a, 'py, PyString>> {
        let id = usize::try_from(id).ok()?;
        let text = self.0.get(id / PAGE)?.get()?.0[id % PAGE].load(Ordering::Acquire);
        // SAFETY: null, or a `str` that `keep` put there, which is held as long as `self`.
        unsafe { Some(Borrowed::from_ptr_or_opt(py, text)?.cast_unchecked()) }
    }

    /// Keeps the text of an id from now on, unless one is kept already.
    pub fn keep(&self, id: u32, text: &Bound<'_, PyString>) {
        let Ok(id) = usize::try_from(id) else { return };
        let Some(page) = self.0.get(id / PAGE) else { return };
        let page = page.get_or_init(|| Box::new(Page([const { AtomicPtr::new(ptr::null_mut()) }; PAGE])));
        let owned = text.clone();
        let (slot, null) = (&page.0[id % PAGE], ptr::null_mut());
        if slot.compare_exchange(null, owned.as_ptr(), Ordering::Release, Ordering::Relaxed).is_ok() {
            // Held by the slot.
            std::mem::forget(owned);
        }
    }
}
