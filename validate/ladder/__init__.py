"""Makes the table of the measured ladder from records."""
