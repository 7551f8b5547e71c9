//! The Kimi line of Moonshot AI: one rank file, names by model.
//!
//! Names, flags and ids are facts of the published `tokenizer_config.json` and `generation_config.json` files.

use crate::{Model, Source};

include!("kimi_sha256.rs");

#[repr(C, align(64))]
struct Aligned<B: ?Sized>(B);

/// The table image made by `build.rs`.
pub static IMAGE: &[u8] = {
    static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kimi.image")));
    &ALIGNED.0
};

const CONTROL_IDS: std::ops::Range<u32> = 163_584..163_840;

/// Kimi K3.
pub const K3: Model = Model {
    name: "kimi-k3",
    named: &[
        (163_584, "[BOS]", true),
        (163_585, "[EOS]", true),
        (163_586, "<|end_of_msg|>", true),
        (163_587, "<|open|>", false),
        (163_588, "<|close|>", false),
        (163_589, "<|sep|>", false),
        (163_590, "[start_header_id]", true),
        (163_591, "[end_header_id]", true),
        (163_593, "[EOT]", true),
        (163_602, "<|media_begin|>", true),
        (163_603, "<|media_content|>", true),
        (163_604, "<|media_end|>", true),
        (163_605, "<|media_pad|>", true),
        (163_649, "<osagent_mode>", true),
        (163_838, "[UNK]", true),
        (163_839, "[PAD]", true),
    ],
    control_ids: CONTROL_IDS,
    eos_ids: &[163_586],
    source: Source::Kimi,
};

/// Kimi K2 (Instruct, Thinking).
pub const K2: Model = Model {
    name: "kimi-k2",
    named: &[
        (163_584, "[BOS]", true),
        (163_585, "[EOS]", true),
        (163_586, "<|im_end|>", true),
        (163_587, "<|im_user|>", true),
        (163_588, "<|im_assistant|>", true),
        (163_590, "<|start_header_id|>", true),
        (163_591, "<|end_header_id|>", true),
        (163_593, "[EOT]", true),
        (163_594, "<|im_system|>", true),
        (163_595, "<|tool_calls_section_begin|>", false),
        (163_596, "<|tool_calls_section_end|>", false),
        (163_597, "<|tool_call_begin|>", false),
        (163_598, "<|tool_call_argument_begin|>", false),
        (163_599, "<|tool_call_end|>", false),
        (163_601, "<|im_middle|>", true),
        (163_838, "[UNK]", true),
        (163_839, "[PAD]", true),
    ],
    control_ids: CONTROL_IDS,
    eos_ids: &[163_586],
    source: Source::Kimi,
};

/// Kimi K2.5.
pub const K2_5: Model = Model {
    name: "kimi-k2.5",
    named: &[
        (163_584, "[BOS]", true),
        (163_585, "[EOS]", true),
        (163_586, "<|im_end|>", true),
        (163_587, "<|im_user|>", true),
        (163_588, "<|im_assistant|>", true),
        (163_590, "<|start_header_id|>", true),
        (163_591, "<|end_header_id|>", true),
        (163_593, "[EOT]", true),
        (163_594, "<|im_system|>", true),
        (163_595, "<|tool_calls_section_begin|>", false),
        (163_596, "<|tool_calls_section_end|>", false),
        (163_597, "<|tool_call_begin|>", false),
        (163_598, "<|tool_call_argument_begin|>", false),
        (163_599, "<|tool_call_end|>", false),
        (163_601, "<|im_middle|>", true),
        (163_602, "<|media_begin|>", true),
        (163_603, "<|media_content|>", true),
        (163_604, "<|media_end|>", true),
        (163_605, "<|media_pad|>", true),
        (163_606, "<think>", false),
        (163_607, "</think>", false),
        (163_838, "[UNK]", true),
        (163_839, "[PAD]", true),
    ],
    control_ids: CONTROL_IDS,
    eos_ids: &[163_586],
    source: Source::Kimi,
};
