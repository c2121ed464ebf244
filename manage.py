#!/usr/bin/env python
"""Django's command line for the console."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        reason = str(error).partition("\n")[0]
        sys.exit(
            f"The database does not answer: {reason}\n"
            "`make run` starts one, `python -m config.database start` starts it alone, and DATABASE_URL"
            " names another."
        )


if __name__ == "__main__":
    main()
