"""Leaves out iterations of loops that are proved to be steady, and says what they would have done."""
