"""How static files are stored: under a name with their hash, compressed once."""

from __future__ import annotations

from typing import Any

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Only what a page can ask for, and gzip only.

    With brotli, the unhashed copies and the source maps the first start takes half a minute (brotli
    alone 6 s on two cores); without them 1 s.
    """

    @property
    def keep_only_hashed_files(self) -> bool:
        return True

    def create_compressor(self, **options: Any) -> Compressor:
        options["extensions"] = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
        return Compressor(**options, use_brotli=False)
