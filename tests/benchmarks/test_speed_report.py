"""The table of the speed benchmark: ratios, and missed aims."""

import copy
from typing import Any

import pytest

from benchmarks.tables.speed_report import explanations, speed_rows


def contender(rate: float, unit: str = "pairs/s", **further: Any) -> dict[str, Any]:
    return {"unit": unit, "rate": {"median": rate, "min": 0.9 * rate, "max": 1.1 * rate}, **further}


@pytest.fixture
def speed() -> dict[str, Any]:
    training = {"training": contender(60, share_of_sgemm=0.5), "training-paper": contender(2)}
    training |= {f"training-{name}": contender(30) for name in ("paper-fair", "st-cosine", "st-cosent", "padded")}
    encoding = {"encoding": contender(450, "sentences/s")}
    encoding |= {
        f"encoding-st-{size}": contender(rate, "sentences/s") for size, rate in ((32, 300), (64, 320), (128, 200))
    }
    encoding |= {f"encoding-{name}": contender(400, "sentences/s") for name in ("onnx", "onnx-int8", "st-bf16")}
    encoding["encoding-bf16"] = contender(900, "sentences/s")
    backend = {"encoding": contender(200, "sentences/s"), "encoding-int8": contender(500, "sentences/s")}
    backend["encoding-onnx-int8"] = contender(400, "sentences/s")
    evaluation = {
        "evaluation": contender(250),
        "evaluation-st": contender(125),
        "evaluation-paper": contender(8.628),
    }
    frozen = {
        "frozen": contender(5000, details={"first_seconds": 30.0, "seconds_without_trainer": 0.25}, count=5000),
        "frozen-paper": contender(5),
    }
    matrix = {"matrix": contender(3e7), "matrix-cdist": contender(1e7)}
    memory_parts = {"libraries": 0.5e9, "parameters": 1.7e9}
    memory = {"memory": contender(8, peak_memory_bytes=2.7e9, details=memory_parts)}
    search = {name: contender(1e8) for name in ("search-cosine", "search-head", "search-st")}
    options = {name: contender(60) for name in ("training", "training-frozen-embeddings", "training-both")}
    options["training-bf16"] = contender(90)
    lora = {
        "training": contender(60, peak_memory_bytes=1.2e9),
        "training-lora": contender(80, peak_memory_bytes=1e9),
        "memory": contender(8, peak_memory_bytes=2.7e9),
        "memory-lora": contender(10, peak_memory_bytes=1.8e9),
    }
    profile = {
        "profile": contender(50, details={"addmm": 0.5, "mm": 0.25}),
        "profile-bf16": contender(90, details={"mm": 0.4, "copy_": 0.1}),
    }
    comparisons = {
        "training": training,
        "training-bf16": {"training-bf16": contender(120), "training-st-bf16": contender(60)},
        "options": options,
        "lora": lora,
        "start": {"start": contender(0.125, "starts/s"), "start-st": contender(0.1, "starts/s")},
        "encoding": encoding,
        "backend": backend,
        "evaluation": evaluation,
        "frozen": frozen,
        "matrix": matrix,
        "search": search,
        "memory": memory,
        "profile": profile,
    }
    return {name: {"contenders": contenders} for name, contenders in comparisons.items()}


def row(speed: dict[str, Any], what: str, against: str = "") -> list[str]:
    (found,) = [row for row in speed_rows(speed) if row[0] == what and against in row[2]]
    return found


def test_options_are_compared_with_the_training_without_them(speed: dict[str, Any]) -> None:
    assert row(speed, "training with `--bf16`")[4] == "1.5"


def test_lora_is_compared_in_speed_and_memory(speed: dict[str, Any]) -> None:
    assert row(speed, "training with `--use_peft`, BERT-base's shape")[1:5] == [
        "10.0 pairs/s (9.0–11.0)",
        "without the option",
        "8.0 pairs/s (7.2–8.8)",
        "1.2",
    ]
    assert row(speed, "peak memory with `--use_peft`, MiniLM")[1:5] == [
        "1.00 GB",
        "without the option",
        "1.20 GB",
        "1.2",
    ]


def test_rates_come_with_their_spread_and_ratio(speed: dict[str, Any]) -> None:
    assert row(speed, "training, 16 pairs a step", "the paper's loop") == [
        "training, 16 pairs a step",
        "60.0 pairs/s (54.0–66.0)",
        "the paper's loop",
        "2.0 pairs/s (1.8–2.2)",
        "30.0",
        "20, reached",
    ]


def test_the_best_batch_size_of_the_library_counts(speed: dict[str, Any]) -> None:
    encoding = row(speed, "encoding", "sentence-transformers")
    assert encoding[2].endswith("its best batch size (64)")
    assert encoding[4:] == ["1.4", "1.3, reached"]


def test_a_start_that_takes_too_long_is_missed(speed: dict[str, Any]) -> None:
    what = "from the command to the first step, quick start"
    assert row(speed, what)[1:] == [
        "8.0 s",
        "sentence-transformers, the same pairs",
        "10.0 s",
        "1.2",
        "6 s, **missed**",
    ]
    speed["start"]["contenders"]["start"] = contender(0.25, "starts/s")
    assert row(speed, what)[-1] == "6 s, reached"


def test_a_backend_is_compared_with_torch_and_with_the_library_alone(speed: dict[str, Any]) -> None:
    what = "encoding with `--backend onnx-int8`, without bfloat16 instructions"
    assert row(speed, what, "without the option")[4] == "2.5"
    assert row(speed, what, "ONNX Runtime")[4:] == ["1.2", "1, reached"]


def test_times_of_different_work_are_compared_as_times(speed: dict[str, Any]) -> None:
    # 1,500 pairs at 250 a second; 8,628 pairs at 8.628 a second.
    assert row(speed, "a development score")[1:] == [
        "6.0 s",
        "the paper's loop (all of STS-B)",
        "1,000 s",
        "167",
        "60, reached",
    ]
    assert row(speed, "frozen encoder, first epoch")[1:5] == ["31.0 s", "the paper's loop", "1,000 s", "32"]
    assert row(speed, "frozen encoder, each further epoch")[4] == "1,000"


def test_what_was_missed_is_said(speed: dict[str, Any]) -> None:
    assert row(speed, "learned score of all pairs")[1:] == [
        "30.0 M pairs/s (27.0 M–33.0 M)",
        "`torch.cdist` split by sign",
        "10.0 M pairs/s (9.0 M–11.0 M)",
        "3.0",
        "8, **missed**",
    ]


def test_where_time_and_memory_go(speed: dict[str, Any]) -> None:
    assert explanations(speed) == [
        "Shares of a training step in float32: `addmm` 50%, `mm` 25%.",
        "In bfloat16: `mm` 40%, `copy_` 10%.",
        "With a frozen encoder, encoding takes 30.0 s of the first epoch. Each further epoch takes 1.00 s: 0.25 s for "
        "the head, the rest for Trainer.",
        "Peak memory of training an encoder of BERT-base's shape: libraries 0.50 GB; weights, gradients and Adam's "
        "moments 1.70 GB; activations and all else 0.50 GB.",
        "The search corpus is 50,000 made-up vectors in clusters.",
    ]


def test_a_missing_comparison_is_an_error(speed: dict[str, Any]) -> None:
    for name in speed:
        without = copy.deepcopy(speed)
        del without[name]
        with pytest.raises(KeyError, match=name):
            [*speed_rows(without), *explanations(without)]
