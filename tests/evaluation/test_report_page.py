"""The report of a run: its words on made-up numbers, texts that never become HTML, and its looks."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from datasets import Dataset
from huggingface_hub.utils import filter_repo_objects
from scipy import stats

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.report_charts import (
    POINTS_DRAWN,
    Chart,
    histogram,
    learning_charts,
    reliability_chart,
    score_charts,
)
from sts_regression.evaluation.report_page import (
    PAIRS_QUOTED,
    confusion_of_grades,
    coverage_rows,
    disagreements,
    grading_rows,
    measures_of_grades,
    report_page,
    write_report_page,
)
from sts_regression.evaluation.verdict import judge
from sts_regression.grading.grading import fit_grading, groups_by_score
from sts_regression.grading.in_checkpoints import for_model
from sts_regression.hub.repository import PUBLISHED
from sts_regression.training.run_folder import REPORT_PAGE

INJECTED = """<script>window.injected=1</script><img src=x onerror="window.injected=1">"""
ON_SIX: dict[str, Any] = {"label_values": [0, 1, 2, 3, 4, 5]}
NAMED: dict[str, Any] = {"label_values": [0, 1, 2], "label_names": ["irrelevant", "relevant", "highly relevant"]}
LOG: list[dict[str, Any]] = [
    {"step": 10, "loss": 0.9, "eval_loss": 0.9, "eval_spearman_cosine": 0.6, "eval_spearman_head": 0.65},
    {"step": 20, "loss": 0.5, "eval_loss": 0.8, "eval_spearman_cosine": 0.7, "eval_spearman_head": 0.75},
    {"step": 20, "train_runtime": 60.0},
]
VOID = {"meta", "br"}
LARGEST_PAGE = 200_000  # bytes


def make_record(**changes: Any) -> dict[str, Any]:
    parts = [{"source": "own.csv", "label_scale": [1.0, 5.0], "pairs": 1500, "unlabelled": 7}]
    return {
        "command": ["--train_file", "own pairs.csv"],
        "seed": 42,
        "environment": {"python": "3.11.7", "torch": "2.13.0", "device": "CPU (x86_64)", "threads": 2},
        "data": {
            "train": {"parts": parts},
            "validation": {"parts": [{"source": "19 % of own.csv", "pairs": 48}]},
            "test": {"parts": [{"source": "new.csv", "pairs": 300}]},
        },
        "leakage": {"train": {"own.csv": {"found": 12, "removed": 11}}},
        "training": {"steps": 188, "best_step": 141, "train_runtime": 59.9},
        "results": {
            "before training": {"test": {"spearman_cosine": 0.8765}},
            "after training": {"test": {"spearman_cosine": 0.8872, "spearman_head": 0.8901}},
        },
        "seconds": 3725.0,
        "peak_memory_bytes": {"process": 3 * 2**29},
        **changes,
    }


def made_up(
    folder: Path,
    num_pairs: int = 60,
    is_continuous: bool = False,
    text: str = "a cat",
    record: dict[str, Any] | None = None,
    is_scored_before: bool = True,
    log_history: list[dict[str, Any]] = LOG,
    usage: str = "print(1 < 2)",
    **options: Any,
) -> str:
    """The page of scores that follow labels, those after training more closely."""
    config = STSRegressionConfig(**{**ON_SIX, **options})
    generator = np.random.default_rng(0)
    low, high = config.label_values[0], config.label_values[-1]
    gold = np.array(config.label_values)[np.arange(num_pairs) % len(config.label_values)]
    if is_continuous:
        gold = generator.uniform(low, high, num_pairs)
    shares, noise = (gold - low) / (high - low), generator.normal(size=(3, num_pairs))
    has_cosine = config.encoder_type == "bi-encoder"
    before = PairScores(None, shares + 0.3 * noise[0] if has_cosine else None)
    head = low + (high - low) * (shares + 0.2 * noise[1]) if config.head_is_trained else None
    after = PairScores(head, shares + 0.1 * noise[2] if has_cosine else None)
    verdict = judge(before, after, gold)
    folder.mkdir(exist_ok=True)
    page = report_page(
        folder.name,
        {"verdict": None if verdict is None else verdict.to_dict(), **(record or make_record())},
        Dataset.from_dict(
            {"sentence1": [text] * num_pairs, "sentence2": ["a dog"] * num_pairs, "line": range(2, num_pairs + 2)}
        ),
        before if is_scored_before else None,
        after,
        config,
        "test",
        labels={"train": np.repeat(gold, 2), "test": gold},
        log_history=log_history,
        usage=usage,
    )
    write_report_page(page, folder / REPORT_PAGE)
    return (folder / REPORT_PAGE).read_text(encoding="utf-8")


class Page(HTMLParser):
    """A page as a browser reads it: elements, their attributes, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.opened == []
        self.text = " ".join(self.text.split())

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.opened[-1:] != ["style"]:
            self.text += f" {data}"

    def values(self, attribute: str) -> list[str]:
        return [value for name, value in self.attributes if name == attribute]


KINDS: dict[str, dict[str, Any]] = {
    "grades": {},
    "named grades": NAMED,
    "continuous": {"is_continuous": True},
    "a hundred grades": {"label_values": list(range(101))},
    "no head": {"loss_type": "cosent"},
    "head off the scale": {"loss_type": "pearson"},
    "cross-encoder": {"encoder_type": "cross-encoder"},
    "nothing before": {"is_scored_before": False, "record": make_record(verdict=None)},
    "nothing logged": {"log_history": []},
    "one step": {"log_history": LOG[:1]},
    "five pairs": {"num_pairs": 5},
    "uneven grades": {"label_values": [0, 1, 4], "loss_type": "mse"},
    "old record": {"record": {}},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_run_has_a_whole_page(tmp_path: Path, options: dict[str, Any]) -> None:
    source = made_up(tmp_path / "own-pairs", **options)
    page = Page(source)
    assert source.startswith("<!DOCTYPE html>")
    assert len(source.encode()) < LARGEST_PAGE
    pictures = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    assert len(pictures) > 2
    for picture in pictures:
        ElementTree.fromstring(picture)
    places = {float(number) for name in ("cx", "cy", "x", "y") for number in page.values(name)}
    assert 0 <= min(places) <= max(places) <= 400
    assert "nan" not in " ".join(value for name, value in page.attributes if name != "content").lower().split()


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_a_page_loads_and_runs_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    source = made_up(tmp_path / "own-pairs", text="see https://example.org/", **options)
    page = Page(source)
    assert not page.tags & {"script", "img", "link", "iframe", "image", "use", "object"}
    assert page.values("src") == []
    assert {link for link in page.values("href") if not link.startswith("#")} == {"run.json"}
    assert {link[1:] for link in page.values("href") if link.startswith("#")} <= set(page.values("id"))
    style = source[source.index("<style>") : source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.findall(r'="[^"]*https?:', source)
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.values("content")


def test_the_page_says_what_the_record_and_the_scores_say(tmp_path: Path) -> None:
    verdict = {"before": 0.8, "after": 0.8124, "low": -0.002, "high": 0.027, "difference": 0.0124}
    verdict |= {"standard_error": 0.01, "num_pairs": 1234, "num_groups": 17}
    page = Page(
        made_up(
            tmp_path / "own-pairs", record=make_record(verdict={**verdict, "outcome": "unclear", "kept": "trained"})
        )
    )
    for sentence in (
        "own-pairs",
        "+1.24 points no significant difference from the untouched encoder",
        "on 1,234 development pairs (17 groups of pairs with shared texts): 80.00 for the cosine of the untouched "
        "encoder, 81.24 for the score",
        "from −0.20 to +2.70 points",
        "test 87.65 88.72 89.01",
        "The 60 test pairs. A box holds the middle 50 % of the scores of a grade's pairs; the line in it is",
        "training own.csv 1,500 7 1 to 5 12 11",
        "development held out of own.csv 48 0 – – –",
        "test new.csv 300 0 – – –",
        "Best on the development pairs at step 141.",
        "in all, evaluation included 1 h 2 min 5 s",
        "peak memory 1.5 GiB",
        "device CPU (x86_64)",
        "print(1 < 2)",
        "--train_file 'own pairs.csv'",
    ):
        assert sentence in page.text
    assert "The run keeps" not in page.text
    assert "gold" not in page.text


def test_the_time_includes_that_of_the_folds(tmp_path: Path) -> None:
    record = make_record(seconds=10.0, folds={"count": 5, "seconds": 50.0})
    assert "in all, evaluation included 1 min" in Page(made_up(tmp_path / "run", record=record)).text


def test_times_say_what_they_leave_out(tmp_path: Path) -> None:
    bundled = {"pairs": 1500, "seconds": 2.0}
    record = make_record(bundled_pairs=bundled, refit={"count": 1, "seconds": 3.0})
    text = Page(made_up(tmp_path / "run", record=record)).text
    assert "training on bundled pairs 2 s optimizer" in text
    assert "first round, without the held-out pairs 3 s" in text
    assert "These times leave out loading libraries and writing this report." in text
    stored = make_record(bundled_pairs={**bundled, "is_stored": True})
    assert "bundled pairs 2 s (stored by an earlier run)" in Page(made_up(tmp_path / "run", record=stored)).text


def test_an_encoder_that_was_kept_is_named(tmp_path: Path) -> None:
    verdict = {
        "before": 0.8,
        "after": 0.7,
        "low": -0.13,
        "high": -0.08,
        "standard_error": 0.01,
        "num_pairs": 60,
        "difference": -0.1,
    }
    record = make_record(verdict={**verdict, "outcome": "worse", "kept": "start"})
    text = Page(made_up(tmp_path / "run", record=record)).text
    assert "−10.00 points worse than the untouched encoder" in text
    assert "The run keeps the untouched encoder." in text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"encoder_type": "cross-encoder"}, "A cross-encoder has no score before training"),
        ({"record": make_record(verdict=None)}, "No development pairs were scored before training"),
    ],
)
def test_a_page_without_a_verdict_says_why(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    assert reason in Page(made_up(tmp_path / "run", **options)).text


def test_texts_and_names_are_no_html(tmp_path: Path) -> None:
    injected = {
        place: f"""</svg></style><script>{place}()</script><img src=x onerror="{place}()">"""
        for place in ("text", "command", "source", "device", "torch", "grade", "reason", "usage")
    }
    part = {"source": injected["source"], "pairs": 1, "label_scale": None}
    record = make_record(
        command=[injected["command"]],
        data={"train": {"parts": [part]}},
        environment={"device": injected["device"], "torch": injected["torch"]},
        grading={"no_intervals": injected["reason"]},
    )
    names = ["irrelevant", "relevant", injected["grade"]]
    folder = tmp_path / "<script>folder()<script>"
    page = Page(
        made_up(
            folder,
            text=injected["text"],
            record=record,
            usage=injected["usage"],
            label_values=[0, 1, 2],
            label_names=names,
        )
    )
    assert not page.tags & {"script", "img"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert [place for place, text in injected.items() if text not in page.text] == []
    assert page.text.count(folder.name) == 2


def test_a_name_that_is_no_text_is_shown_in_part(tmp_path: Path) -> None:
    assert "<h1>run ?</h1>" in made_up(tmp_path / "run \udcff")


def test_many_pairs_make_no_large_page(tmp_path: Path) -> None:
    source = made_up(tmp_path / "run", num_pairs=5000, is_continuous=True, text="ein langer Satz " * 100)
    assert len(source.encode()) < LARGEST_PAGE
    assert source.count('r="2"/>') == 2 * POINTS_DRAWN
    assert "The 5,000 test pairs, of which 1,000 are drawn." in Page(source).text
    assert source == made_up(tmp_path / "run", num_pairs=5000, is_continuous=True, text="ein langer Satz " * 100)


def charts_of(gold: list[float], shows_grades: bool = True) -> list[Chart]:
    values = np.array(gold)
    return score_charts(values, values / 5, values, STSRegressionConfig(**ON_SIX), shows_grades, "score", True)


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (["irrelevant", "relevant", "highly relevant"], [["irrelevant"], ["relevant"], ["highly", "relevant"]]),
        (
            ["no", "some", "incomprehensibilities of very many a word in this text"],
            [["no"], ["some"], ["incomprehens…", "of very many", "a word in…"]],
        ),
    ],
)
def test_long_names_of_grades_are_in_lines(tmp_path: Path, names: list[str], lines: list[list[str]]) -> None:
    config = STSRegressionConfig(label_values=[0, 1, 2], label_names=names)
    chart = histogram(np.array([0.0, 1, 2]), "training", config)
    assert [text for _, text in chart.x.placed_ticks] == lines
    assert chart.x.further_height == 15 * (len(lines[2]) - 1)
    page = made_up(tmp_path / "run", label_values=[0, 1, 2], label_names=names)
    assert f'viewBox="0 0 400 {190 + chart.x.further_height}"' in page
    assert f">{lines[2][-1]}</tspan>" in page


def test_scores_lie_where_their_labels_are() -> None:
    after, before = charts_of([0, 0, 0, 5, 5, 2.5], shows_grades=False)
    assert [after.x.place(0), after.x.place(5)] == [46.0, 392.0]
    assert after.dots[0] == after.guides[0][0]
    assert after.dots[3] == after.guides[0][1]
    assert after.dots[5] == (219.0, pytest.approx((after.dots[0][1] + after.dots[3][1]) / 2, abs=0.1))
    assert (before.guides, before.boxes) == ([], [])


def test_boxes_hold_the_middle_half_of_a_grade() -> None:
    config = STSRegressionConfig(label_values=[0, 1])
    scores, gold = np.array([0.0, 1, 2, 3, 4, 9]), np.array([0.0, 0, 0, 0, 0, 1])
    chart, *others = score_charts(scores, None, gold, config, True, "score", False)
    left, top, width, height, median = chart.boxes[0]
    assert (top, round(top + height, 1), median) == (chart.y.place(3), chart.y.place(1), chart.y.place(2))
    assert left < chart.x.place(0) < left + width
    assert all(left < x < left + width for x, _ in chart.dots[:5])
    assert (others, len(chart.boxes)) == ([], 2)
    assert chart.description == "After training: score against label; medians: 2.00 at 0, 9.00 at 1"


def test_grades_are_counted_as_the_model_names_them() -> None:
    scores, gold = np.array([-3.0, 0.49, 0.5, 1.6, 7.0]), np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    counts = confusion_of_grades(scores, gold, STSRegressionConfig(label_values=[0, 1, 2]))
    assert counts.tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 1]]
    measures = measures_of_grades(counts, STSRegressionConfig(label_values=[0, 1, 3]))
    macro_f1 = (2 / 3 + 1 / 2 + 2 / 3) / 3
    kappa = 1 - 2 / 6
    assert measures == pytest.approx({"accuracy": 0.6, "macro_f1": macro_f1, "mae": 0.6, "quadratic_kappa": kappa})


def test_scores_and_grades_are_those_of_predictions() -> None:
    grading = {"score_map": {"knots": [0.0, 1.0], "values": [0.0, 2.0]}, "cut_points": [0.1, 1.9]}
    config = STSRegressionConfig(label_values=[0, 1, 2], grading=grading)
    scores = PairScores(np.array([0.04, 0.06, 0.94, 0.96]), None).mapped(config.grading).head
    assert scores is not None
    assert scores.tolist() == pytest.approx([0.08, 0.12, 1.88, 1.92])
    assert confusion_of_grades(scores, np.array([0.0, 0, 2, 2]), config).tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        (NAMED, True),
        ({"is_continuous": True}, False),
        ({"loss_type": "cosent"}, False),
        ({"loss_type": "pearson"}, False),
        ({"label_values": list(range(101))}, False),
    ],
)
def test_there_are_counts_of_grades_if_there_are_grades(
    tmp_path: Path, options: dict[str, Any], is_there: bool
) -> None:
    page = Page(made_up(tmp_path / "run", **options))
    assert ("grades" in page.values("id"), "#grades" in page.values("href")) == (is_there, is_there)


def test_parts_of_equal_size_have_their_mean_label() -> None:
    order = np.random.default_rng(0).permutation(100)
    gold = np.where(np.arange(100) % 2, 4.0, 2.0)
    groups = groups_by_score(np.arange(100.0)[order], gold[order])
    assert len(groups) == 10
    error = stats.t.ppf(0.975, 90) * (10 / 9 / 10) ** 0.5  # the labels of a group have a variance of 10 / 9
    assert groups[0] == {"pairs": 10, "score": 4.5, "label": 3.0, "error": pytest.approx(error)}
    assert [len(groups_by_score(np.arange(n), np.arange(n))) for n in (3.0, 23.0)] == [1, 4]


def test_bars_of_reliability_end_at_the_ends_of_the_scale() -> None:
    groups = [{"pairs": 5, "score": score, "label": score, "error": 2.0} for score in (0.5, 4.5)]
    chart = reliability_chart(groups, STSRegressionConfig(**ON_SIX), "score", True)
    assert [ends for _, *ends in chart.errors] == [
        [chart.y.place(0), chart.y.place(2.5)],
        [chart.y.place(2.5), chart.y.place(5)],
    ]


def test_intervals_of_parts_cover_the_expected_label() -> None:
    generator, covered = np.random.default_rng(0), []
    for _ in range(200):
        gold = (generator.random(50) < 0.1).astype(float)  # rare: all labels of most parts are equal
        covered += [abs(part["label"] - 0.1) <= part["error"] for part in groups_by_score(generator.random(50), gold)]
    assert np.mean(covered) > 0.9


def test_what_was_learned_of_grades_is_shown_as_far_as_it_is_known(tmp_path: Path) -> None:
    config = STSRegressionConfig(**NAMED)
    assert list(grading_rows({})) == list(coverage_rows({}, config)) == []
    of_grades = {"report": {"coverage_by_grade": [{"grade": 0.0, "pairs": 9, "coverage": 0.9}]}}
    assert list(coverage_rows(of_grades, config)) == [("irrelevant", "9", "90.00")]
    assert list(coverage_rows(of_grades, STSRegressionConfig(label_values=list(range(101))))) == []
    grading = {"level": 0.9, "num_pairs": 1300, "report": {"mae": 0.25}, "no_intervals": "Too few pairs."}
    grading["source"] = "10 % of own.csv"
    text = Page(made_up(tmp_path / "run", record=make_record(grading=grading))).text
    assert "development pairs 1,300 mean absolute error" in text
    assert "Too few pairs." in text
    assert "learned from 10 % of own.csv alone" in text
    assert "intervals contain" not in text


def test_errors_of_grades_are_promised_only_if_there_are_some(tmp_path: Path) -> None:
    gold = np.arange(12) % 3.0
    fitted = fit_grading(gold, gold, [0, 1, 2])
    assert fitted.report == {}
    config = STSRegressionConfig(**NAMED, grading=for_model(fitted))
    pairs = Dataset.from_dict({"sentence1": ["a cat"] * 12, "sentence2": ["a dog"] * 12})
    record, labels = make_record(grading=fitted.to_dict()), {"validation": gold}
    scores = PairScores(gold, gold)
    text = Page(report_page("run", record, pairs, None, scores, config, "validation", labels, [], "")).text
    assert "Reliability shows cross-validated errors." not in text
    assert "The cut points were fitted to these pairs; expect larger errors on new ones." in text
    assert "cross-validated on development pairs" not in text
    assert str(fitted.no_intervals) in text


@pytest.mark.parametrize("split", ["test", "validation"])
def test_a_fitted_grading_is_measured_on_test_pairs(tmp_path: Path, split: str) -> None:
    generator = np.random.default_rng(0)
    gold = np.arange(600) % 3.0
    raw = gold / 2 + 0.2 * generator.normal(size=600)
    fitted = fit_grading(raw, gold, [0, 1, 2])
    config = STSRegressionConfig(**NAMED, loss_type="pearson", grading=for_model(fitted))
    record = make_record(grading=fitted.to_dict())
    pairs = Dataset.from_dict({"sentence1": ["a cat"] * 600, "sentence2": ["a dog"] * 600})
    labels = {split: gold}
    after = PairScores(raw, None).mapped(config.grading)
    page = Page(report_page("run", record, pairs, None, after, config, split, labels, [], ""))
    assert "Scores are calibrated, as in predictions." in page.text
    assert "by cut points that were learned from the development pairs" in page.text
    assert ("The cut points were fitted to these pairs;" in page.text) == (split == "validation")
    assert ("Reliability shows cross-validated errors." in page.text) == (split == "validation")
    assert ("labels of the test pairs that intervals contain, percent" in page.text) == (split == "test")
    accuracy = np.mean(fitted.grade(raw)["grade"] == gold)
    assert f"accuracy, percent {100 * accuracy:.2f}" in page.text
    report = fitted.report
    groups = report["reliability"] if split == "validation" else groups_by_score(fitted.grade(raw)["score"], gold)
    assert f"{groups[0]['pairs']} {groups[0]['score']:.2f} {groups[0]['label']:.2f} ±" in page.text
    assert ("Scores are cross-validated" in page.text) == (split == "validation")
    assert f"labels that intervals contain, percent {100 * report['coverage']:.2f}" in page.text
    assert f"in units of the labels {report['width']:.2f}" in page.text
    rare = report["coverage_by_grade"][2]
    assert f"highly relevant {rare['pairs']} {100 * rare['coverage']:.2f}" in page.text


def listed(on_scale: bool, scores: list[float], gold: list[float]) -> list[dict[str, Any]]:
    texts = [f"text {number} {'long ' * 100}" for number in range(len(gold))]
    pairs = Dataset.from_dict({"sentence1": texts, "sentence2": ["a dog"] * len(gold)})
    untouched = np.array(scores) / 10
    config = STSRegressionConfig(**NAMED)
    return list(disagreements(pairs, np.array(scores), np.array(gold), untouched, config, on_scale))


def test_the_pairs_that_disagree_most_come_first() -> None:
    first, second = listed(True, [0.1, 2.9, 0.5, 1.0, 1.0, 1.0], [0.0, 0.5, 2.0, 1.0, 1.0, 1.0])
    assert (first["label"], first["score"], first["before"], first["places"]) == ("0.5", "2.9", "0.29", [25.0, 100.0])
    assert (second["label"], second["places"]) == ("highly relevant (2)", [100.0, 25.0])
    assert first["texts"][1] == "a dog"
    assert (len(first["texts"][0]), first["texts"][0][:6], first["texts"][0][-1]) == (200, "text 1", "…")
    assert [pair["label"] for pair in listed(True, [0.0], [1.00001])] == ["relevant (1)"]


def test_few_pairs_and_pairs_that_agree_are_not_listed() -> None:
    assert len(listed(True, [0.0, 1.0] * 100, [0.0, 2.0] * 100)) == PAIRS_QUOTED
    assert len(listed(True, [0.0] * 25, [2.0] * 25)) == 5
    assert len(listed(True, [0.0] * 25, [2.0] * 2 + [0.5] * 23)) == 2  # half a grade
    hundred = STSRegressionConfig(label_values=list(range(101)))
    gold, pairs = np.zeros(25), Dataset.from_dict({"sentence1": ["a cat"] * 25, "sentence2": ["a dog"] * 25})
    scores = np.r_[50.0, 11, 9, np.zeros(22)]
    assert [pair["score"] for pair in disagreements(pairs, scores, gold, None, hundred, True)] == ["50", "11"]
    assert listed(False, [float(n) for n in range(25)], [float(n) for n in range(25)]) == []


def test_a_page_without_disagreements_says_so(tmp_path: Path) -> None:
    assert "No pair disagrees by more." in Page(made_up(tmp_path / "run", num_pairs=2, label_values=[0, 1])).text
    assert "No pair disagrees by more." not in Page(made_up(tmp_path / "run")).text


def test_the_line_of_a_pair_is_told_if_it_names_one_file(tmp_path: Path) -> None:
    assert "line or row" in Page(made_up(tmp_path / "run")).text
    parts = [{"source": name, "pairs": 30} for name in ("a.csv", "b.csv")]
    two_files = make_record(data={"test": {"parts": parts}})
    assert "line or row" not in Page(made_up(tmp_path / "run", record=two_files)).text


def test_scores_off_the_scale_are_compared_by_rank() -> None:
    scores, gold = [10.0, 20.0, 30.0, 40.0, 50.0, 90.0], [1.0, 0.5, 0.8, 1.5, 2.0, 0.0]
    first, second = listed(False, scores, gold)
    assert (first["score"], first["places"]) == ("90", [0.0, 100.0])
    assert second["places"] == [60.0, 0.0]


def test_the_log_is_drawn_by_step() -> None:
    loss, correlation = learning_charts(LOG)
    assert [(name, len(points)) for name, points in loss.lines] == [("training", 2), ("development", 2)]
    assert loss.lines[0][1][0] == (loss.x.place(10), loss.y.place(0.9))
    assert [name for name, _ in correlation.lines] == ["cosine", "score"]
    assert correlation.lines[1][1][1:] == [(correlation.x.place(20), correlation.y.place(75))]
    equal = [{"step": step, "eval_spearman_cosine": 0.5, "eval_spearman_head": 0.5} for step in (1, 2)]
    assert [[name for name, _ in chart.lines] for chart in learning_charts(equal)] == [["cosine and score"]]
    long = learning_charts([{"step": step, "loss": 1 / step} for step in range(1, 100_001)])[0].lines[0][1]
    assert (len(long), long[0][0], long[-1][0]) == (POINTS_DRAWN, 46.0, 392.0)


def test_a_run_that_was_evaluated_once_has_no_best_step(tmp_path: Path) -> None:
    once = [LOG[0], {"step": 20, "loss": 0.5}]
    assert [[name for name, _ in chart.lines] for chart in learning_charts(once)] == [["training"]]
    assert "Best on the development pairs" not in Page(made_up(tmp_path / "run", log_history=once)).text
    assert "fewer than two steps" in Page(made_up(tmp_path / "run", log_history=LOG[:1])).text


def test_labels_are_counted_by_grade_or_by_tenth() -> None:
    config = STSRegressionConfig(**NAMED)
    chart = histogram(np.array([0.0, 0, 0, 0, 2, 2]), "training", config)
    assert (chart.title, chart.description) == ("Training: 6 pairs", "Pairs by label: 4, 0, 2")
    assert [bar[3] for bar in chart.bars] == [120.0, 0.0, 60.0]
    uneven = histogram(np.array([0.0, 1, 4]), "test", STSRegressionConfig(label_values=[0, 1, 4], loss_type="mse"))
    assert [bar[2] for bar in uneven.bars] == [55.4] * 3
    assert histogram(np.array([0.1, 2]), "test", config).description == "Pairs by label: 1, 0, 0, 0, 0, 0, 0, 0, 0, 1"


def test_a_report_is_not_among_what_is_published() -> None:
    assert list(filter_repo_objects([REPORT_PAGE], allow_patterns=PUBLISHED)) == []


@pytest.mark.parametrize(
    "options",
    [NAMED, pytest.param({"is_continuous": True}, marks=pytest.mark.slow)],
    ids=["grades", "continuous"],
)
def test_a_browser_shows_the_page_on_a_phone_and_in_the_dark(
    tmp_path: Path, open_browser: Callable[[], AbstractContextManager[Any]], options: dict[str, Any]
) -> None:
    by_grade = [{"grade": 0.0, "pairs": 9, "coverage": 0.9}]
    grading = {"level": 0.9, "num_pairs": 1300, "report": {"width": 1.0, "coverage_by_grade": by_grade}}
    made_up(
        tmp_path / "run",
        text=f"{'a' * 190} {INJECTED}",
        record=make_record(grading=grading),
        usage="x" * 100,
        **options,
    )
    backgrounds, requested = set(), []
    with open_browser() as browser:
        for width in (360, 1200):
            for scheme in ("light", "dark"):
                visit = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
                visit.on("request", lambda request: requested.append(request.url))
                visit.goto((tmp_path / "run" / REPORT_PAGE).as_uri())
                assert visit.evaluate("document.documentElement.scrollWidth") == width
                tables = (
                    "[...document.querySelectorAll('.wide, pre')].filter(box => box.scrollWidth > box.clientWidth)"
                )
                assert visit.evaluate(f"{tables}.map(box => box.textContent.slice(0, 60))") == []
                backgrounds.add(visit.evaluate("getComputedStyle(document.body).backgroundColor"))
                assert visit.evaluate("window.injected") is None
                assert visit.screenshot(full_page=True).startswith(b"\x89PNG")
    assert len(backgrounds) == 2
    assert set(requested) == {(tmp_path / "run" / REPORT_PAGE).as_uri()}
