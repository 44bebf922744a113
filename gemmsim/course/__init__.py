"""The ladder as a course: predict, look, explain, next rung. `gemmsim learn` shows it in a terminal and as a page.

`course.toml` has the words; every number is of a run: `steps.py` predicts the rungs and reads the answers from them.
"""
