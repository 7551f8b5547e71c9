"""What runs inside a worker process: one engine, one clock.

Imports are relative, and reach NumPy, psutil and the engine under test alone: a worker starts
without `kizami`, so that loading it can be timed, and no rival runs beside its tables.

Read next: `worker` for the loop, `engines` for what each engine is asked to do.
"""
