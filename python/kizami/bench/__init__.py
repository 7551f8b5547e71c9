"""The benchmark: Kizami and its rivals, on the same bytes, with ids checked in every run.

A process measures exactly one engine. What runs in there is `lab`, which imports nothing of the
rest of this package, so that no engine finds Kizami, or a tool of ours, already loaded. All else
runs in the process of the command: it makes texts, starts workers, compares ids, keeps records.

Nothing here is needed to use Kizami; the extra `bench` holds what it needs beside the base.

Read next: `cases` for what is measured, `runner` for the order of things, `lab` for the clock.
"""
