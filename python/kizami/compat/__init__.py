"""Modules that have the names and the behaviour of other libraries, over `kizami.Tokenizer`.

Each stands for one library and is thin: it has no tokenizing of its own, and nothing else in the
package imports it.
"""
