"""The notebook in docs/ runs from top to bottom, and its stored outputs are those of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "cache-experiment.ipynb"


def printed(notebook: Any) -> list[str]:
    """What each code cell prints, as one string; without cells that print nothing, and without warnings."""
    outputs = [
        [output for output in cell.get("outputs", ()) if output.get("name") == "stdout"] for cell in notebook.cells
    ]
    return ["".join(output.text for output in of_cell) for of_cell in outputs if of_cell]


@pytest.mark.slow
def test_the_notebook_runs_and_prints_what_it_shows() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = printed(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    branches, verdict, costs, *_, deeper = printed(notebook)
    assert (branches, deeper) == (stored[0], stored[-1])
    assert verdict.startswith("True\nlargest difference of two logits: ")
    counts = [line.split()[:3] for line in costs.splitlines()[1:]]
    assert counts == [line.split()[:3] for line in stored[2].splitlines()[1:]], "depths and tokens"
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
