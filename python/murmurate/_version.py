"""The version of this package."""

from __future__ import annotations

import os
import re


def version() -> str:
    """That of the clone where the package is imported from one, else that of the installed package."""
    clone = os.path.join(os.path.dirname(__file__), "..", "..", "Cargo.toml")
    try:
        with open(clone, encoding="utf-8") as file:
            found = re.search(r'^\[workspace\.package\]\s+^version = "(.+)"', file.read(), re.MULTILINE)
        if found:
            return found[1]
    except OSError:
        pass
    # Only here, because it takes longer than the rest of the package.
    from importlib import metadata

    try:
        return metadata.version("murmurate")
    except metadata.PackageNotFoundError:
        return "0+unknown"
