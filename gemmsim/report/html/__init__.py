"""Renders a Report as one HTML file that needs nothing else: see `render.render`."""
