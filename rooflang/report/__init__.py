"""What people read: results as plain text, without colour, at most 100 columns wide where words can be wrapped."""
