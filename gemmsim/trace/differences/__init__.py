"""Relates the blocks of a grid to one that is executed, the leader. `gemmsim.trace.engine.differences` says how."""
