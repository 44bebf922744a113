"""A Report as one HTML file that needs nothing else: `render.render`."""
