"""What the error becomes without one mechanism of the timing model after another."""
