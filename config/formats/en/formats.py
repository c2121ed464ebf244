"""To the second and with the zone: an operator compares these times with a log."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i:s e"
