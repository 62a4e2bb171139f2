"""Every run of the tests tries the same examples, and keeps what it compiles away from the user's own cache."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("repeatable")

# Kept between runs, and for all checkouts: what did not change is not compiled again, and what was not used lately goes.
_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ["SARDONYX_CACHE"] = str(_CACHES / "sardonyx-tests")
os.environ["SARDONYX_CACHE_LIMIT"] = "1G"
