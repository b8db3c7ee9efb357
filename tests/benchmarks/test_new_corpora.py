"""The benchmark on corpora that helped choose nothing."""

import re
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks import new_corpora
from benchmarks.graded_methods import Method, Predictions
from benchmarks.new_corpora import COMPARED, KEY, NEW_BUDGETS, NEW_CORPORA, NEW_DRAWS, corpora_page, summarize_corpora
from benchmarks.tables.graded_table import read_runs
from sts_regression.evaluation.measures import PairScores

GAINS = {method: 0.02 * number for number, method in enumerate(COMPARED)}


def lines() -> list[dict[str, Any]]:
    return [
        {
            **dict(zip(KEY, run, strict=True)),
            "spearman": 0.5 + GAINS[run[3]] + 0.001 * run[0] * number * (run[3] == "default"),
            "train_pairs": 100,
            "test_pairs": 50,
        }
        for number, run in enumerate(product(NEW_DRAWS, NEW_BUDGETS, NEW_CORPORA, COMPARED))
    ]


def test_the_corpus_is_the_unit_of_the_tests() -> None:
    summary = summarize_corpora(lines())
    assert summary["num_tests"] == len(NEW_BUDGETS) * (len(COMPARED) - 1)
    for budget, other in product(NEW_BUDGETS, COMPARED[:-1]):
        corpora, test = (summary["budgets"][budget][name] for name in ("corpora", "tests"))
        ours, theirs = ([own["spearman"][name] for own in corpora.values()] for name in ("default", other))
        expected = stats.ttest_rel(ours, theirs)
        assert test[other]["p"] == pytest.approx(expected.pvalue)
        assert [test[other]["low"], test[other]["high"]] == pytest.approx(list(expected.confidence_interval()))
        assert test[other]["p_holm"] >= test[other]["p"]
        assert test[other]["ahead"] == len(NEW_CORPORA)
    page = corpora_page(summary, summary)
    assert len(re.findall(r"\| `glosses`: ", page)) == 2 * len(NEW_BUDGETS)
    assert "| 10/10 |" in page


def test_missing_runs_are_named() -> None:
    with pytest.raises(ValueError, match=r"1 runs are missing, such as \(1, '100', 'glosses', 'untouched'\)"):
        summarize_corpora(lines()[1:])


def test_each_draw_divides_a_corpus_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"text {i % 40}", f"other {i}", float(i % 6)) for i in range(120)]
    seen: list[list[Any]] = []
    for draw in NEW_DRAWS:
        parts = new_corpora.divide_corpus(pairs, draw)
        assert sorted(parts["train"] + parts["test"]) == sorted(pairs)
        assert not {first for first, _, _ in parts["train"]} & {first for first, _, _ in parts["test"]}
        seen.append(parts["test"])
    assert sorted(seen[0]) != sorted(seen[1])

    def learn(name: str, task: Any, options: Any) -> Any:
        assert len(task.pairs) <= 84
        generator = np.random.default_rng([task.seed, len(name)])
        return lambda first, second: Predictions(PairScores(None, generator.uniform(-1, 1, len(first))))

    monkeypatch.setattr(new_corpora, "METHODS", {name: Method(partial(learn, name)) for name in COMPARED})
    monkeypatch.setattr(new_corpora, "load_libraries", lambda: None)  # extras that this method does not need
    path = tmp_path / "runs.jsonl"
    new_corpora.run_draws(dict.fromkeys(NEW_CORPORA, pairs), path, 2)
    assert len(read_runs(path)) == len(NEW_DRAWS) * len(NEW_BUDGETS) * len(NEW_CORPORA) * len(COMPARED)
    assert summarize_corpora(read_runs(path))["budgets"]["all"]["corpora"]["tweets"]["train_pairs"] == 84
