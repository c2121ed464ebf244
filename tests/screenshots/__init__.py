"""``python -m tests.screenshots``: pictures of every page for the documentation."""
