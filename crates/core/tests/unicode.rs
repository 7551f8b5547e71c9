//! The class tables against the pinned `regex-syntax`, for every code point.

use kizami_core::unicode::*;

fn holds(pattern: &str) -> Vec<bool> {
    let hir = regex_syntax::parse(pattern).unwrap();
    let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) = hir.kind() else {
        panic!("{pattern} is not a Unicode class");
    };
    let mut set = vec![false; 0x11_0000];
    for range in class.iter() {
        set[range.start() as usize..=range.end() as usize].fill(true);
    }
    set
}

#[test]
fn every_code_point_has_the_class_of_the_pinned_tables() {
    let (han, letter, number, mark) = (holds(r"\p{Han}"), holds(r"\p{L}"), holds(r"\p{N}"), holds(r"\p{M}"));
    let (lower, upper, space) = (holds(r"\p{Ll}"), holds(r"[\p{Lu}\p{Lt}]"), holds(r"\s"));
    for c in 0..0x11_0000u32 {
        let i = c as usize;
        let want = match c {
            0x0a | 0x0d => NEWLINE,
            _ if han[i] && letter[i] => HAN_LETTER,
            _ if han[i] && number[i] => HAN_NUMBER,
            _ if han[i] => HAN_OTHER,
            _ if lower[i] => LOWER,
            _ if upper[i] => UPPER,
            _ if letter[i] => CASELESS,
            _ if mark[i] => MARK,
            _ if number[i] => NUMBER,
            _ if space[i] => SPACE,
            _ => OTHER,
        };
        assert_eq!(class_of(c), want, "U+{c:04X}");
        if c < 0x80 {
            assert_eq!(class_of_byte(c as u8), want);
        }
    }
    assert_eq!(class_of(0x11_0000), OTHER);
    assert_eq!(class_of(u32::MAX), OTHER);
}

#[test]
fn the_pinned_tables_are_of_the_stated_unicode_version() {
    assert_eq!(UNICODE_VERSION, "16.0.0");
    // U+1C89 came with Unicode 16; U+088F with 17.
    assert!(holds(r"\p{L}")[0x1c89]);
    assert!(!holds(r"\p{L}")[0x088f]);
}

#[test]
fn decoding_gives_back_every_character() {
    for c in (0..0x11_0000).filter_map(char::from_u32) {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        assert_eq!(decode_at(bytes, 0), (c.into(), c.len_utf8()));
    }
}

#[test]
fn every_code_point_has_the_kind_of_the_pinned_tables() {
    let (letter, number, mark) = (holds(r"\p{L}"), holds(r"\p{N}"), holds(r"\p{M}"));
    let (lower, upper, space) = (holds(r"\p{Ll}"), holds(r"[\p{Lu}\p{Lt}]"), holds(r"\s"));
    let symbol = holds(r"[\p{P}\p{S}]");
    for c in 0..0x11_0000u32 {
        let i = c as usize;
        let want = match c {
            0x0a | 0x0d => NEWLINE,
            _ if lower[i] => LOWER,
            _ if upper[i] => UPPER,
            _ if letter[i] => CASELESS,
            _ if mark[i] => MARK,
            _ if number[i] => NUMBER,
            _ if space[i] => SPACE,
            _ if symbol[i] => SYMBOL,
            _ => OTHER,
        };
        assert_eq!(kind_of(c), want, "U+{c:04X}");
        if c < 0x80 {
            assert_eq!(kind_of_byte(c as u8), want);
        }
    }
    assert_eq!(kind_of(0x11_0000), OTHER);
    assert_eq!(kind_of(u32::MAX), OTHER);
}
