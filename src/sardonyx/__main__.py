"""`python -m sardonyx` is `sardonyx`."""

from __future__ import annotations

from sardonyx.cli import main

main()
