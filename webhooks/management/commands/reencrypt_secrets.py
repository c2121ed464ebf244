"""``manage.py reencrypt_secrets``: the second step when the key that encrypts secrets is changed.

First the new key is put in front of SECRETS_ENCRYPTION_KEYS, everywhere. Then this writes every secret
anew. Only after that may the old key go.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks import endpoints


class Command(BaseCommand):
    help = (
        "Encrypt signing secrets and endpoints' headers with the first of SECRETS_ENCRYPTION_KEYS."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done = endpoints.encrypt_anew()
        self.stdout.write(
            f"{done.rewritten} written anew with the first key, {done.current} were written with it"
            " before."
        )
        if done.unreadable:
            raise CommandError(
                f"{done.unreadable} cannot be read with any key in SECRETS_ENCRYPTION_KEYS. Add the key"
                " that wrote them and repeat this, or rotate those endpoints' secrets."
            )
