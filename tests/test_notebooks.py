"""The notebooks in docs/notebooks: they run, and the kept output is meant for readers."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sts_regression.models.loading import BUNDLED_PACKAGE

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 600  # on a busy machine; together they take less than a minute


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_what_its_cells_show_and_nothing_else(notebook: Path) -> None:
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        is_quiet = "".join(cell["source"]).startswith("%%capture")
        assert [output["output_type"] for output in cell["outputs"]] == ([] if is_quiet else ["execute_result"])
    text = notebook.read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|root|tmp|Users|work)/", text) == []


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="the notebooks extra is not installed")
    pytest.importorskip("ipykernel", reason="the notebooks extra is not installed")
    nbformat = pytest.importorskip("nbformat")
    if importlib.util.find_spec(BUNDLED_PACKAGE) is None:
        pytest.skip("the quickstart extra is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    read = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(
        read, timeout=SECONDS_PER_CELL, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    kept = [[output["output_type"] for output in cell["outputs"]] for cell in code_cells(notebook)]
    shown = [[output["output_type"] for output in cell["outputs"]] for cell in read.cells if cell.cell_type == "code"]
    assert shown == kept
    assert list(tmp_path.iterdir()) == []
