"""Many texts in one call: count them, and pad them into a rectangle for a model.

python examples/count_batch.py
"""

from __future__ import annotations

import kizami

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "素早い茶色の狐がのろまな犬を飛び越える。",
    "الثعلب البني السريع يقفز فوق الكلب الكسول.",
    "for (int i = 0; i < n; ++i) { total += a[i]; }",
    "",
]


def main() -> None:
    """Print the counts, then the padded ids and their mask."""
    tokenizer = kizami.load("kimi-k3")
    batch = tokenizer.encode_batch(TEXTS)
    print(f"{len(batch)} texts, {len(batch.ids)} ids in one {batch.ids.dtype} array")
    for text, ids in zip(TEXTS, batch, strict=True):
        print(f"  {len(ids):>3} ids for {len(text):>3} characters, {len(text.encode()):>3} bytes")

    pad = tokenizer.control_tokens["[PAD]"]
    ids, mask = batch.padded(pad, side="left")
    print(f"\npadded on the left with {pad}: shape {ids.shape}, {mask.sum()} ids are real")
    print(ids[:, -6:])


if __name__ == "__main__":
    main()
