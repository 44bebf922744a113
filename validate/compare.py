"""Predictions held against records: `python -m gemmsim_validate.compare [SIZE ...]` prints the table as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from gemmsim.api import analyze

from .records import Case, load_cases

# Counters that must equal the hardware's. Not among them: shared stores, whose wavefronts include arbitration with
# other accesses (6 to 25 % of requests in published measurements, 7 to 16 % in ours).
EXACT = (
    "smsp__inst_executed.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "launch__registers_per_thread",
    "launch__shared_mem_config_size",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_warps",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
)
NOISE = 0.005  # of a counter


def time_table(cases: Iterable[Case]) -> list[str]:
    """One Markdown row a case: predicted and measured time, and the error in percent."""
    rows = ["| kernel | M=N=K | predicted us | measured us | error % |", "|---|---|---|---|---|"]
    for case in cases:
        predicted = analyze(case.request()).evidence.timing.duration_us
        error = 100 * (predicted / case.back_to_back_us - 1)
        rows.append(f"| {case.name} | {case.n} | {predicted:.1f} | {case.back_to_back_us:.1f} | {error:+.1f} |")
    return rows


def main(sizes: Iterable[int]) -> None:
    wanted = set(sizes)
    chosen = [case for case in load_cases() if not wanted or case.n in wanted]
    sys.stdout.write("\n".join(time_table(chosen)) + "\n")


if __name__ == "__main__":
    main(int(size) for size in sys.argv[1:])
