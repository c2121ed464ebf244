"""Every setting of the console, read from the environment.

A malformed variable stops the start with a sentence that names it: a wrong value must never become a
silent default.
"""

from __future__ import annotations

import ipaddress
from email.utils import parseaddr
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from config import secrets_file
from config.database import MAX_CONNECTIONS, EmbeddedPostgres
from config.mail_server import MailServer
from config.mail_server import parse as parse_mail_server
from webhooks.rules import policies

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()


def integer(name: str, default: int, low: int, high: int) -> int:
    """The whole number in the environment variable ``name``, between ``low`` and ``high``."""
    text = env.str(name, default=str(default))
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise ImproperlyConfigured(f"{name} must be a whole number from {low} to {high}.")
    return int(text)


def switch(name: str, default: bool = False) -> bool:
    """An on/off environment variable: 1 or 0, nothing else, so that a typing error is not "off"."""
    text = env.str(name, default="1" if default else "0")
    if text not in ("0", "1"):
        raise ImproperlyConfigured(f"{name} must be 1 or 0.")
    return bool(text == "1")


def networks(name: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """A comma-separated list of networks such as ``127.0.0.0/8,::1/128``."""
    try:
        return tuple(
            ipaddress.ip_network(part.strip())
            for part in env.str(name, default="").split(",")
            if part.strip()
        )
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a list of networks (CIDR): {error}.") from None


def delivery_policies(name: str) -> dict[str, policies.Policy]:
    """Policies as JSON by name, such as ``{"fast": {"waitsS": [0, 1, 2], "stopsOnRefusal": true,
    "disableRule": {"kind": "attempts_in_a_row", "count": 20}}}``.
    """
    try:
        return policies.parse(env.str(name, default="") or "{}")
    except policies.PolicyRefused as refusal:
        raise ImproperlyConfigured(f"{name}: {refusal}") from None


def mail_server(name: str) -> MailServer:
    """The mail server whose address the variable holds; one without a host when it is not set."""
    text = env.str(name, default="")
    try:
        return parse_mail_server(text) if text else MailServer()
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not a mail server's address: {error}.") from None


def mail_address(name: str, default: str) -> str:
    """One address that mail may come from, with or without a name before it."""
    text: str = env.str(name, default=default)
    _, address = parseaddr(text)
    local, _, domain = address.rpartition("@")
    if not (local and domain) or not text.isprintable():
        raise ImproperlyConfigured(
            f"{name} must be an address such as Console <console@example.com>."
        )
    return text


def database(url: str = "") -> dict[str, Any]:
    """A database by its address, or by DATABASE_URL. What is wrong with one is not quoted: it holds a
    password.
    """
    try:
        return dict(env.db_url_config(url or env.str("DATABASE_URL")))
    except (ValueError, KeyError, ImproperlyConfigured):
        raise ImproperlyConfigured(
            "DATABASE_URL is malformed: it must read postgres://user:password@host:5432/name, with"
            " special characters of the password percent-encoded."
        ) from None


# --- Where things are ---------------------------------------------------------------------------

DATA_DIR = Path(env.str("CONSOLE_DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
CONSOLE_PORT = integer("CONSOLE_PORT", 8000, 1, 65535)
CONSOLE_URL = env.str("CONSOLE_URL", default=f"http://127.0.0.1:{CONSOLE_PORT}").rstrip("/")

# --- Django -------------------------------------------------------------------------------------

DEBUG = switch("DEBUG")
SECRET_KEY = env.str("SECRET_KEY", default="") or secrets_file.read_or_create(
    DATA_DIR / "secret_key"
)
# Keys that encrypt signing secrets at rest, newest first: the first encrypts, all of them decrypt, so
# a new key is put in front and the old one stays until every secret was written anew.
SECRETS_ENCRYPTION_KEYS = env.list("SECRETS_ENCRYPTION_KEYS", default=[]) or [
    secrets_file.read_or_create(DATA_DIR / "encryption_key")
]
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "pgtrigger",
    "allauth",
    "allauth.account",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "django_q",
    "organizations",
    "webhooks",
    "commands",
    "demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "csp.middleware.CSPMiddleware",
    "organizations.console.zones.ZoneMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "organizations.console.context.console",
            ],
            "libraries": {
                "console": "organizations.console.tags",
                "webhooks": "webhooks.console.tags",
            },
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "config.static_files.StaticFilesStorage"
    },
}

# --- Database -----------------------------------------------------------------------------------

EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")
EMBEDDED_CONNECTIONS = MAX_CONNECTIONS
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **(database(EmbeddedPostgres(DATA_DIR).url) if EMBEDDED_DATABASE else database()),
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }
}
# A network that swallows packets must not hold a process for minutes: give up a connection that does
# not open in 5 s, and one whose other end has been silent for about 15 s, before django-q2 takes the
# worker for hung. The server must not hold on either: a session that lost its client in the middle of a
# transaction keeps its locks, which may be the one that every claim needs, and the server's own
# keepalive would notice after two hours. No transaction here waits for anything but statements.
SESSION_LIMITS = (
    "-c idle_in_transaction_session_timeout=15s -c client_connection_check_interval=5s"
    " -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3"
)
database_options = DATABASES["default"].setdefault("OPTIONS", {})
database_options |= {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    # Nothing is prepared for being repeated, only what asks for it: organizations.prepared.
    "prepare_threshold": 1_000_000_000,
    "options": f"{SESSION_LIMITS} {database_options.get('options', '')}".strip(),
}
if not DATABASES["default"].get("ENGINE", "").endswith(".postgresql"):
    raise ImproperlyConfigured(
        "DATABASE_URL must be a postgres:// address: PostgreSQL is the engine."
    )
# Ids are UUIDv7, made here: they sort by time, so that indexes grow at one end.
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "console_cache",
    },
    # django-q2 writes its own statistics twice a second; the heartbeat in the database replaces them.
    "cluster": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}

# --- People -------------------------------------------------------------------------------------

AUTH_USER_MODEL = "organizations.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "organizations.accounts.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True

# --- Mail ---------------------------------------------------------------------------------------

MAIL_SERVER = mail_server("EMAIL_URL")
EMAIL_BACKEND = (
    "organizations.notices.transport.SmtpBackend"
    if MAIL_SERVER.host
    else "organizations.notices.transport.PageBackend"
)
EMAIL_HOST, EMAIL_PORT = MAIL_SERVER.host, MAIL_SERVER.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL_SERVER.user, MAIL_SERVER.password
EMAIL_USE_TLS = MAIL_SERVER.scheme == "smtp+tls"
EMAIL_USE_SSL = MAIL_SERVER.scheme == "smtp+ssl"
# One wait for the mail server, seconds; a whole mail has a deadline of its own.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = mail_address("DEFAULT_FROM_EMAIL", "Command console <console@localhost>")

# --- Security -----------------------------------------------------------------------------------

HTTPS = CONSOLE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "organizations.console.views.csrf_failure"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- API ----------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["organizations.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["organizations.api.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["organizations.api.content.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["organizations.api.content.JsonParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "organizations.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Command console API",
    "DESCRIPTION": "Issue commands, dispatch them to an integrator's webhook, report what happened.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "CAMELIZE_NAMES": True,
}
# One request's body at most, in bytes; a byte more is refused with 413 before anything is made.
MAX_BODY_BYTES = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES + 65_536

# --- Delivery -----------------------------------------------------------------------------------

ENDPOINT_ALLOW_HTTP = switch("ENDPOINT_ALLOW_HTTP")
ENDPOINT_ALLOWED_NETWORKS = networks("ENDPOINT_ALLOWED_NETWORKS")
# A CA bundle to trust instead of certifi's, for private receivers.
ENDPOINT_CA_BUNDLE = env.str("ENDPOINT_CA_BUNDLE", default="")
# Policies that endpoints may choose besides the three presets.
DELIVERY_POLICIES = delivery_policies("DELIVERY_POLICIES")
# Attempts in flight at one endpoint at most: a receiver that hangs holds this many threads, not all.
ENDPOINT_MAX_IN_FLIGHT = integer("ENDPOINT_MAX_IN_FLIGHT", 8, 1, 1000)
# The same for an endpoint that has not answered yet, or not the last time. Two, so that one attempt that
# a killed worker left behind does not hold up the others until its lease ends.
ENDPOINT_UNPROVEN_IN_FLIGHT = 2
DELIVERY_WORKERS = integer("DELIVERY_WORKERS", 2, 1, 64)
SENDER_THREADS = integer("SENDER_THREADS", 64, 1, 512)
ATTEMPT_DEADLINE_S = policies.ATTEMPT_TIMEOUT_S
# A worker that has not recorded an attempt by then is taken for dead and the attempt for lost. Three
# times the deadline: a live worker needs at most the deadline and the time to record.
LEASE_S = 30

Q_CLUSTER: dict[str, Any] = {
    "name": "console",
    "broker_class": "webhooks.engine.broker.ClockBroker",
    "orm": "default",
    "cache": "cluster",
    "workers": DELIVERY_WORKERS,
    # One waiting task a worker: a task waits in the database, not in a process that may die.
    "queue_limit": DELIVERY_WORKERS,
    "timeout": 20,
    "retry": 60,
    "max_attempts": 5,
    "ack_failures": False,
    # Schedule rows are looked at every 30 s only: too coarse for anything here, and one broken row
    # stops the rest. The broker is the clock instead.
    "scheduler": False,
    "save_limit": 100,
    "recycle": 1_000_000,
    "poll": 0,
    "log_level": "WARNING",
}

# What the broker hands out again and again: dotted task and its period in seconds.
CLOCK_TICKS: dict[str, float] = {
    "commands.tasks.sweep_ack_deadlines": 0.5,
    "webhooks.engine.tasks.sweep_leases": 1.0,
    "webhooks.engine.heartbeat.probe": 1.0,
    "organizations.tasks.send_notices": 2.0,
}

# --- Logs ---------------------------------------------------------------------------------------

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        name: {"level": env.str("LOG_LEVEL", default="INFO")}
        for name in ("config", "organizations", "webhooks", "commands", "demo")
    }
    | {"django-q": {"level": "WARNING"}},
}
