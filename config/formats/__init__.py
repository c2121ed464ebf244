"""How Django writes dates and times where it does so by itself, as in the admin."""
