"""What the benchmark commands do to data before and after the runs."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_a_kept_run_file_has_no_sentences_and_no_single_steps() -> None:
    from reproduce import slim  # type: ignore[import-not-found] # found through the fixture

    leaks = {"train": {"a.csv": {"found": 2, "examples": [["a sentence", "another"]]}}}
    history = [{"loss": 1.0, "step": 1}, {"eval_loss": 2.0, "step": 1}]
    record = {
        "leakage": leaks,
        "training": {"log_history": history, "steps": 1},
        "stages": [{"leakage": leaks, "training": {"log_history": history}}],
        "sts_tasks": {"tasks": {"STS12": {"pairs": 3, "subsets": {"MSRpar": {}}}}},
    }
    kept = {"leakage": {"train": {"a.csv": {"found": 2}}}}
    assert slim(record) == {
        **kept,
        "training": {"log_history": history[1:], "steps": 1},
        "stages": [{**kept, "training": {"log_history": history[1:]}}],
        "sts_tasks": {"tasks": {"STS12": {"pairs": 3}}},
    }


def test_genres_and_the_scale_of_what_is_held_out(tmp_path: Path) -> None:
    from held_out_genres import clean_pairs, read_sick  # type: ignore[import-not-found]

    from sts_regression.data import read_pairs
    from sts_regression.leakage import LeakFilter

    stsb = tmp_path / "sts-train.csv"
    lines = [("MSRpar", "1", "2.5", "a", "b"), ("MSRvid", "2", "5.0", "c", "d"), ("images", "3", "0.0", "e", "f")]
    stsb.write_text("".join(f"main-x\t{g}\t2012\t{n}\t{y}\t{s}\t{t}\n" for g, n, y, s, t in lines))
    tested = tmp_path / "test.csv"
    tested.write_text("sentence1,sentence2,label\nf,e,0\n")
    pairs = clean_pairs(stsb, LeakFilter({"task": read_pairs(tested).pairs}, "normalized"))
    assert (pairs[:]["genre"], pairs[:]["label"]) == (["MSRpar", "MSRvid"], [2.5, 5.0])

    sick = tmp_path / "SICK_train.txt"
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    sick.write_text(header + "1\ta\tb\t4.5\tNEUTRAL\n2\tc\td\t1\tNEUTRAL\n")
    assert read_sick(sick)[:]["label"] == [4.375, 0.0]
    assert "reproduce" in sys.modules


def test_a_kept_leak_matrix_names_files_without_their_folders(
    small_sts_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reproduce

    from sts_regression import leakage

    graded = tmp_path / "graded"
    graded.mkdir()
    for name in reproduce.GRADED_FILES:
        (graded / name).write_text("sentence1,sentence2,label\nA secret.,Another one.,1\n")
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(reproduce.subprocess, "run", lambda command, **_: leakage.main(command[3:]))
    reproduce.keep_leak_matrix(small_sts_data, graded)
    text = (tmp_path / "results" / "leakage" / "matrix.json").read_text()
    assert "secret" not in text
    assert str(tmp_path) not in text
    matrix = json.loads(text)
    stsb = ["sts-train.csv", "SICK_train.txt", "sts-dev.csv", "SICK_trial.txt"]
    assert list(matrix["sets"]) == [*stsb, *reproduce.GRADED_FILES]
    assert matrix["leak_filter"] == "normalized"
    assert matrix["sets"]["cxc.csv"]["by_test_set"]["STS-B"] == {"pairs": 0, "sentences": 0, "test_pairs": 0}
    # The training pairs of the small STS-B have the first sentences of its test pairs, and other second ones.
    assert matrix["sets"]["sts-train.csv"]["by_test_set"]["STS-B"] == {"pairs": 0, "sentences": 12, "test_pairs": 12}


def test_counts_of_reliability_are_added_up_by_kind() -> None:
    from reliability import counts_by_kind  # type: ignore[import-not-found]

    from sts_regression.run_tables import reliability_page

    lines = [
        {"test": f"tests/test_{file}.py::test_x[{number}]", "kind": kind, "tried": 3, "accepted": 1, "refused": 2}
        for number, (file, kind) in enumerate([("a", "kills"), ("a", "kills"), ("b", "kills"), ("a", "files")])
    ]
    kinds = counts_by_kind(lines)
    assert kinds == {
        "kills": {"tried": 9, "accepted": 3, "refused": 6, "tests": ["tests/test_a.py", "tests/test_b.py"]},
        "files": {"tried": 3, "accepted": 1, "refused": 2, "tests": ["tests/test_a.py"]},
    }
    environment = {"threads": 2, "device": "CPU", "torch": "2", "transformers": "5"}
    page = reliability_page({"environment": environment, "seconds": 90.0, "kinds": kinds})
    assert (
        "\n12 tried, 4 came through, 8 refused; 2 minutes on 2 threads of a CPU, torch\n2, transformers 5.\n" in page
    )
    assert "| kills | 9 | 3 | 6 | tests/test_a.py, tests/test_b.py |" in page
