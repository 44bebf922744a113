"""The hardware of one SM, each unit once: plain functions over records (`gemmsim.native.records`).

Python runs them as they stand, and `gemmsim.native` compiles the same source. `simpy_drive` and `native_drive` of the
package above call two of them, `scheduler.turn` and `blocks.start_block`, which call the others.
"""
