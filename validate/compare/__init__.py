"""Compares predictions with records: predicts each recorded launch, judges the errors, and shows how large they are."""
