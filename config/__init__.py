"""The project around the apps: settings, addresses, the embedded database and the supervisor."""
