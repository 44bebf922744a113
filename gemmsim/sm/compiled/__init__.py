"""The SM model compiled: a twin of `gemmsim.sm.core`, equal to it cycle for cycle and some sixty times as fast.

`core`, `sub_partition`, `memory_path`, `fetch`, `servers` and `registers` are the model that people read and change;
what they do is written a second time here, over arrays. A change there is made here too, and
tests/property/test_compiled.py holds the two equal. Observers need the first.
"""
