// Included by the build script as well.

/// Reads the packed ranks of splintr-vocab-pack 1: magic, count, then `varint(rank) varint(length) bytes` per token.
fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    packed = packed.strip_prefix(b"SPLNTRV1")?;
    let (count, mut rest) = packed.split_at_checked(4)?;
    let count = u32::from_le_bytes(count.try_into().ok()?);
    let mut tokens = vec![Vec::new(); usize::try_from(count).ok()?];
    for _ in 0..count {
        let rank = varint(&mut rest)?;
        let length = varint(&mut rest)?;
        let (token, more) = rest.split_at_checked(length)?;
        *tokens.get_mut(rank)? = token.to_vec();
        rest = more;
    }
    rest.is_empty().then_some(tokens)
}

fn varint(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, more) = rest.split_first()?;
        *rest = more;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
