"""Tunables x sizes x GPUs: what cannot launch is left out, the rest predicted in parallel and kept in a database."""
