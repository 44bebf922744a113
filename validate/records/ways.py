"""Names the ways in which times were taken."""

from __future__ import annotations

# A prediction is compared with the first of them that a case has. Times of launches whose operands are in no cache come
# first.
TIMES = ("rotated", "published", "back_to_back", "single_launch")
