"""Drop-ins: the interfaces of other tokenizer libraries, run by Kizami."""
