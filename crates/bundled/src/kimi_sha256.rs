/// SHA-256 of Moonshot's `tiktoken.model`, the rank file of the whole Kimi line.
pub const RANK_FILE_SHA256: &str = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103";
