"""Kizami in inference engines: one module an engine, found by the engine itself.

Each has a function `register` that the engine calls as an entry point. Nothing here imports an
engine before that. Read next: `vllm`, `sglang`.
"""
