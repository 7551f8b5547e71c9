//! placeholder
pub(super) const NEWER: &[(u32, u32)] = &[(0x1e4ec, 0x1e4ef)];
