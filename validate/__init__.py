"""Measures on a real GPU and shows predicted beside measured. Installed as gemmsim_validate."""
