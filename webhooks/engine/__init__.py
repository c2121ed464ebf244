"""Claim, then send, then record: three short steps, and no transaction is open while one is sent."""
