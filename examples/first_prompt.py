"""Count, encode and decode a first prompt: text, then a conversation.

python examples/first_prompt.py
"""

from __future__ import annotations

import kizami


def main() -> None:
    """Print each id of a text beside its bytes, then what a conversation adds."""
    tokenizer = kizami.load("kimi-k3")
    text = "Kizami cuts prompts: 速くて正確. 🎉"

    ids = tokenizer.encode(text)
    print(f"{tokenizer.name} has {tokenizer.vocab_size:,} ids; this text takes {len(ids)} of them:")
    for id_ in ids.tolist():
        print(f"  {id_:>6}  {tokenizer.token_bytes(id_)!r}")
    assert tokenizer.decode(ids) == text

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    prompt = tokenizer.encode_chat(messages, thinking_effort="low")
    assert tokenizer.count_chat(messages, thinking_effort="low") == len(prompt)
    print(f"\nAs a chat of {len(messages)} messages it takes {len(prompt)} ids. They spell:")
    print(tokenizer.decode(prompt))


if __name__ == "__main__":
    main()
