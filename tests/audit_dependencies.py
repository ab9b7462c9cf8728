"""`python -m tests.audit_dependencies`: compare the packages that requirements.txt installs with known weaknesses.

uv resolves the requirements for Python 3.12, and pip-audit looks up each package among the advisories of PyPI. Where
these cannot be reached, as behind a mirror that has packages only, the command says so and ends with 0; with
`--required`, which the weekly audit uses, with 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from interface.check_space.resolution import pip_indexes, resolve

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
PYTHON = "3.12"


def main() -> int:
    """Print the weaknesses and what could not be looked up. Returns 1 for a weakness or a failure, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.audit_dependencies")
    parser.add_argument("--required", action="store_true", help="Fail if a package could not be looked up.")
    required = parser.parse_args().required
    resolved = resolve(REQUIREMENTS, PYTHON, "", pip_indexes())
    if resolved.returncode:
        print(resolved.stderr, file=sys.stderr)
        return 1
    report = audit(without_local_versions(resolved.stdout))
    weaknesses, skipped = findings(report)
    for line in weaknesses:
        print(line, file=sys.stderr)
    total = len(report["dependencies"])
    print(f"{total - len(skipped)} of {total} packages were looked up, {len(weaknesses)} weaknesses found.")
    if skipped:
        print("No advisories can be reached." if len(skipped) == total else f"Not looked up: {', '.join(skipped)}.")
    return 1 if weaknesses or (required and skipped) else 0


def without_local_versions(pins: str) -> str:
    """Return lines NAME==VERSION without local versions such as +cpu, which advisories do not have."""
    return "".join(f"{line.split('+')[0]}\n" for line in pins.splitlines() if "==" in line)


def audit(pins: str) -> dict[str, Any]:
    """Return pip-audit's report on lines NAME==VERSION; one in which every package is skipped if it cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins.txt"
        file.write_text(pins)
        options = ["--format", "json", "--progress-spinner", "off", "--no-deps", "--disable-pip"]
        command = [sys.executable, "-m", "pip_audit", *options, "--requirement", str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.stdout.startswith("{"):
        return dict(json.loads(ended.stdout))
    print((ended.stderr.strip().splitlines() or ["pip-audit did not run"])[-1], file=sys.stderr)
    return {"dependencies": [{"name": line, "skip_reason": "no report"} for line in pins.split()]}


def findings(report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return a line for each weakness in a report, and the names of the packages that could not be looked up."""
    weaknesses = [
        f"{each['name']} {each['version']}: {one['id']}, repaired in {', '.join(one['fix_versions']) or 'no version'}."
        for each in report["dependencies"]
        for one in each.get("vulns", [])
    ]
    return weaknesses, [each["name"] for each in report["dependencies"] if "skip_reason" in each]


if __name__ == "__main__":
    sys.exit(main())
