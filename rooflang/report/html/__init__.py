"""A result as one page that works offline: `page.write_page`; and as a figure: `figure.draw_frontier`."""
