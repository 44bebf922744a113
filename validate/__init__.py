"""What is checked against real GPUs (installed as `gemmsim_validate`)."""
