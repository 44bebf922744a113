"""Defines the character and the colour of each state of a warp, which all pictures of a timeline share."""

from __future__ import annotations

from gemmsim.sm.types import STALL_REASONS

# Stall reason -> (character, colour on a light background). Capitals are waits for something far away or for other
# warps. Waits for memory are blue and violet, for other warps and barriers orange, for pipes and queues red and brown.
STATES: dict[str, tuple[str, str]] = {
    "selected": ("#", "#1B7F3B"),
    "not_selected": ("n", "#B9DDB0"),
    "wait": ("w", "#C9C9C9"),
    "long_scoreboard": ("L", "#0B3C8C"),
    "short_scoreboard": ("s", "#5AA2E0"),
    "barrier": ("B", "#E69F00"),
    "mio_throttle": ("m", "#B03A2E"),
    "lg_throttle": ("g", "#7B241C"),
    "math_pipe_throttle": ("p", "#D98880"),
    "branch_resolve": ("b", "#8C7B00"),
    "gmma": ("G", "#2E8B8B"),
    "dispatch_stall": ("d", "#8E7CC3"),
    "drain": ("D", "#4B2E83"),
    "membar": ("M", "#A64D79"),
    "no_instruction": ("i", "#6B4A2B"),
    "sleeping": ("z", "#9FB6C3"),
    "tex_throttle": ("t", "#E6B0AA"),
    "imc_miss": ("c", "#6E6E6E"),
    "misc": ("?", "#F0E442"),
}
LETTERS = "".join(STATES[reason][0] for reason in STALL_REASONS)
NO_WARP = " "


def spoken(reason: str) -> str:
    """Write a stall reason in words: "long scoreboard"; "issues" for "selected"."""
    return "issues" if reason == "selected" else reason.replace("_", " ")
