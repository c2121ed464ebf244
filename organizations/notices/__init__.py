"""What people are told by mail: an outbox written with the fact, and a postman who empties it."""
