//! Bytes to bit maps, 64 at a time: every intrinsic of the crate, with a scalar twin beside it.
//!
//! [`Planes`] says of 64 bytes which belong to which class; bit `i` stands for byte `i`. What the classes
//! mean for a split is decided elsewhere (`pretoken`). [`level`] picks the widest form that the processor has, once;
//! `KIZAMI_CPU=scan|scalar|avx2|neon` forces one, for tests. All forms give equal planes: `tests/simd.rs`.

mod classes;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_utf8;

use std::sync::OnceLock;

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub use neon::Neon;
pub use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub use x86::Avx2;

/// Bytes of a window: 64 that are classified, and what the last character among them may need beyond.
pub const WINDOW: usize = 67;

/// Classes of 64 bytes, one bit a byte. All bytes of a character have its bits: "the character before" is one shift
/// away, as in ASCII. [`Classify::ascii`] sets the planes up to `non_ascii`; of a byte from 0x80 on, that plane alone.
/// [`Classify::characters`] adds the characters from U+0080 on, to the planes of their class in [`crate::unicode`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planes {
    /// `a` to `z`; `LOWER`.
    pub lower: u64,
    /// `A` to `Z`; `UPPER`.
    pub upper: u64,
    /// `0` to `9`; `NUMBER` and `HAN_NUMBER`.
    pub number: u64,
    /// U+0020, tab, vertical tab, form feed; `SPACE`.
    pub space: u64,
    /// U+0020.
    pub blank: u64,
    /// `\r` and `\n`.
    pub newline: u64,
    /// `'`.
    pub quote: u64,
    /// Bytes from 0x80 on.
    pub non_ascii: u64,
    /// Bytes that are not the first of their character.
    pub tail: u64,
    /// `CASELESS` and `MARK`.
    pub shared: u64,
    /// `MARK`.
    pub mark: u64,
    /// `HAN_LETTER`, `HAN_NUMBER` and `HAN_OTHER`.
    pub han: u64,
    /// `HAN_OTHER`.
    pub han_other: u64,
}

/// A way to classify bytes.
pub trait Classify: Copy {
    /// The planes of the ASCII characters among 64 bytes.
    fn ascii(self, bytes: &[u8; 64]) -> Planes;

    /// Adds the characters from U+0080 on in the first 64 bytes of `window`, which are UTF-8.
    ///
    /// `before` is what this returned for the 64 bytes before: the class of a character that began there. The result is
    /// the class of the last of the 64 bytes if that is not ASCII, else [`crate::unicode::OTHER`].
    fn characters(self, window: &[u8; WINDOW], before: u8, planes: &mut Planes) -> u8;

    /// The bytes from `low` to `high`, which are not all that there are.
    fn range(self, bytes: &[u8; 64], low: u8, high: u8) -> u64;
}

/// Work that is compiled once for each form. Implementors mark `run` and what it calls `#[inline(always)]`: what is not
/// inlined is compiled for the plain processor. (A closure cannot be marked so.)
pub trait Task {
    /// What it gives.
    type Output;
    /// Does it.
    fn run(self) -> Self::Output;
}

/// A form that this processor can run; there is no other way to make one than to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(pub(crate) Form);

/// The forms that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The scanner, byte by byte: the twin of all others.
    Scan,
    /// Bit maps by plain code.
    Scalar,
    /// Bit maps by AVX2, with BMI.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Bit maps by NEON.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon,
}

impl Level {
    /// All forms that this processor can run, the fastest last.
    #[must_use]
    pub fn all() -> Vec<Level> {
        let mut all = vec![Level(Form::Scan), Level(Form::Scalar)];
        #[cfg(target_arch = "x86_64")]
        all.extend(Avx2::new().map(|witness| Level(Form::Avx2(witness))));
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        all.push(Level(Form::Neon));
        all
    }

    /// The name by which `KIZAMI_CPU` knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Form::Scan => "scan",
            Form::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Form::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Form::Neon => "neon",
        }
    }
}

impl Level {
    /// Runs `task`, compiled for what this form may use: plain loops in it become wide vectors.
    #[inline(always)]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level of this form exists only where the processor has these features.
            Form::Avx2(_) => unsafe { x86::run(task) },
            _ => task.run(),
        }
    }
}

/// Asks the processor to bring a value near, where it knows how to be asked. Nothing else happens.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(value);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The form in use, chosen at the first call: what `KIZAMI_CPU` names if this processor can run it, else the fastest.
#[inline]
#[must_use]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| choose(std::env::var("KIZAMI_CPU").ok().as_deref()))
}

fn choose(forced: Option<&str>) -> Level {
    let all = Level::all();
    let named = all.iter().copied().find(|level| Some(level.name()) == forced);
    // Plain bit maps are no faster than the scanner where the compiler has no vectors to make them with.
    let fastest = match all[..] {
        [.., last] if last.0 != Form::Scalar => last,
        _ => Level(Form::Scan),
    };
    named.unwrap_or(fastest)
}
