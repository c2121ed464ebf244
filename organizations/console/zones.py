"""In which time zone a browser is shown times: UTC, or its own one where somebody switched.

The browser alone knows its zone. It says so in a cookie, so that pages, fragments and the admin are all
written in it from the start. Whatever is kept, sent or exported stays in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

COOKIE: Final = "zone"
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{1,63}")


def named(name: str) -> tzinfo:
    """The zone of this name, such as ``Europe/Berlin``; UTC when nobody knows it."""
    if not NAME.fullmatch(name):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return UTC


def current_name() -> str:
    """The name of the zone that times are shown in; empty for UTC."""
    zone = timezone.get_current_timezone()
    return zone.key if isinstance(zone, ZoneInfo) and zone.key != "UTC" else ""


class ZoneMiddleware:
    """Shows times in the zone that the browser's cookie names, else in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(named(request.COOKIES.get(COOKIE, ""))):
            return self._get_response(request)
