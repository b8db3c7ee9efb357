"""Training files and STS tasks drawn at random: every pair is there once and on the scale, or they are refused."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import Splits, load_splits
from sts_regression.data.sts_tasks import load_sts_tasks
from sts_regression.options.data_arguments import DataArguments

Fuzz = Callable[..., None]
Attempt = Callable[..., Any]


def test_splits_keep_every_pair_once_and_on_the_scale(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"

    def check(
        attempt: Attempt, labels: list[str], share: int, weight: float, scale: list[float] | None, seed: int
    ) -> None:
        path.write_text(
            "sentence1,sentence2,label\n" + "".join(f"a{i},b{i},{label}\n" for i, label in enumerate(labels))
        )

        def load() -> Splits:
            options: Any = {"train_weights": [weight], "label_values": scale, "validation_split_percentage": share}
            return load_splits(
                DataArguments(train_file=[str(path)], **options),
                PairColumns(),
                None,
                do_train=True,
                do_eval=True,
                seed=seed,
            )

        splits = attempt(load, path, "`label_values`", "`train_weights`")
        if splits is None:
            return
        known = {f"a{i}": float(label) for i, label in enumerate(labels)}
        train, validation = (splits.pairs[name] for name in ("train", "validation"))
        assert not set(train["sentence1"]) & set(validation["sentence1"])
        assert abs(len(set(validation["sentence1"])) - len(labels) * share / 100) <= 1
        copies = Counter(train["sentence1"])
        assert all(
            int(weight) <= copies[name] <= math.ceil(weight) for name in set(known) - set(validation["sentence1"])
        )
        for pairs in (train, validation):
            assert pairs["label"] == [known[name] for name in pairs["sentence1"]]
            assert splits.scale is not None
            assert splits.scale.spans(pairs["label"])

    label = st.sampled_from(["0", "1", "2", "3.5", "5", "4.8"])
    odd = st.sampled_from(["-1", "101", "1e300", "nan", "x", "1e16"])
    many, few = st.lists(label, min_size=20, max_size=40), st.lists(st.one_of(label, odd), max_size=20)
    scales = st.sampled_from([*[None] * 4, [0.0, 5.0], [0.0, 2.5, 5.0], [0.0, 1e308], [0.0, 100.0]])
    weights = st.sampled_from([1.0, 2.5, 0.5, 1.0, 2.5, 0.5, 1e-9, 1e300])
    shares = st.one_of(st.integers(25, 75), st.integers(1, 99))
    fuzz("training files", check, st.one_of(many, many, few), shares, weights, scales, st.integers(0, 5), share=0.5)


def test_damaged_sts_tasks_hold_every_pair_or_are_refused(
    fuzz: Fuzz, damaged: Callable[[bytes, int], bytes], small_sts_data: Path
) -> None:
    files = sorted(path for path in small_sts_data.rglob("*") if path.is_file() and "train" not in path.name)
    sound = {path: path.read_bytes() for path in files}

    def check(attempt: Attempt, path: Path, seed: int) -> None:
        path.write_bytes(damaged(sound[path], seed))
        try:
            tasks = attempt(
                lambda: load_sts_tasks(small_sts_data / ("senteval" if "senteval" in path.parts else "")),
                small_sts_data,
            )
        finally:
            path.write_bytes(sound[path])
        for task in tasks or []:
            assert len(task.pairs) == 12
            assert all(text.strip() for text in [*task.pairs["sentence1"], *task.pairs["sentence2"]])
            assert all(map(math.isfinite, task.pairs["label"]))

    fuzz("damaged files of the STS tasks", check, st.sampled_from(files), st.integers(0, 2**32), share=0.2)
