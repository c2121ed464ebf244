"""What the broker's clock has the workers do for organizations."""

from organizations.notices import outbox
from organizations.notices.postman import postman


def send_notices() -> None:
    """Wake this worker's postman when mails are due. Returns at once, whatever the mail server does."""
    if outbox.anything_due():
        postman().wake()
