"""Breaks everything that delivers, under load, and counts what that cost: ``python -m tests.chaos``."""
