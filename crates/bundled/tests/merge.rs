//! All merge strategies against the priority queue, on the Kimi vocabulary and texts that are hard to merge.
#![cfg(feature = "kimi")]

use kizami_core::merge::Scratch;
use kizami_core::merge::greedy::merge_greedy;
use kizami_core::merge::heap::merge_heap;
use kizami_core::merge::long::merge_long;
use kizami_core::merge::short::{MAX_BYTES, merge_short};

/// Numbers without a pattern, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    /// A character of one of several kinds.
    fn character(&mut self, kind: usize) -> char {
        let pick = |numbers: &mut Self, text: &str| text.chars().nth(numbers.below(text.chars().count())).unwrap();
        match kind {
            0 => pick(self, "abcdefghijklmnopqrstuvwxyz"),
            1 => pick(self, "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"),
            2 => pick(self, " \t\n\r"),
            3 => pick(self, "的一是不了在人有我他这中大来上国"),
            4 => pick(self, "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
            5 => pick(self, "=^ "),
            6 => pick(self, "กขคงจฉชซาิีึืุู"),
            7 => char::from_u32(0x300 + u32::try_from(self.below(0x40)).unwrap()).unwrap(),
            _ => char::from_u32(0x1f300 + u32::try_from(self.below(0x300)).unwrap()).unwrap(),
        }
    }

    /// Stretches of one kind of text each, random or periodic.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let (kind, length) = (self.below(9), 1 + self.below(1 + bytes / 2));
            let repeated: String = (0..1 + self.below(4)).map(|_| self.character(kind)).collect();
            let periodic = self.below(3) == 0;
            let end = text.len() + length;
            while text.len() < end {
                if periodic { text.push_str(&repeated) } else { text.push(self.character(kind)) }
            }
        }
        text
    }
}

#[test]
fn strategies_agree_on_the_kimi_vocabulary() {
    let tokenizer = kizami_bundled::find("kimi-k3").unwrap().load().unwrap();
    let tables = &tokenizer.tables().merges;
    assert!(tables.greedy());
    let mut numbers = Numbers(1);
    let (mut want, mut scratch) = (Scratch::default(), Scratch::default());
    for round in 0..6_000 {
        let bytes = 1 + numbers.below(if round % 4 == 0 { 3_000 } else { 60 });
        let text = numbers.text(bytes);
        // Not only whole characters: strategies take any bytes.
        let piece = &text.as_bytes()[numbers.below(2).min(text.len() - 1)..];
        merge_heap(tables, piece, &mut want);
        for (name, merge) in [("greedy", merge_greedy as fn(&_, &_, &mut _)), ("long", merge_long)] {
            merge(tables, piece, &mut scratch);
            assert_eq!(scratch.tokens(), want.tokens(), "{name}: {text:?}");
        }
        if piece.len() <= MAX_BYTES {
            merge_short(tables, piece, &mut scratch);
            assert_eq!(scratch.tokens(), want.tokens(), "short: {text:?}");
        }
        tables.merge(piece, &mut scratch);
        assert_eq!(scratch.tokens(), want.tokens(), "{text:?}");
    }
}
