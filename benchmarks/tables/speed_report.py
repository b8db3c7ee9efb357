"""The table of the speed benchmark: our rate, that of each contender, and whether the aim was reached."""

from collections.abc import Iterator, Mapping
from typing import Any

# Number of pairs in each evaluation of the paper.
PAPER_PAIRS_PER_SCORE = 8_628
DEVELOPMENT_PAIRS = 1_500
START_SECONDS = 6.0  # the longest start that we aim for
ST_ENCODING = ("encoding-st-32", "encoding-st-64", "encoding-st-128")  # at several batch sizes

Speed = Mapping[str, Any]  # a parsed speed.json


def speed_rows(speed: Speed) -> list[list[str]]:
    """Rows of `what`, `ours`, `against`, `theirs`, `ratio`, `aim`; missing comparisons are an error."""
    return [[*row] for row in _rows(speed)]


def _rows(speed: Speed) -> Iterator[tuple[str, ...]]:
    training = speed["training"]["contenders"]
    for name, title, aim in (
        ("training-paper", "the paper's loop", 20),
        ("training-paper-fair", "the same loop, batches padded to their longest sentence", 1.8),
        ("training-st-cosine", "sentence-transformers, CosineSimilarityLoss", 1.8),
        ("training-st-cosent", "sentence-transformers, CoSENTLoss", 1.8),
        ("training-padded", "ours with `--encoding padded`", None),
    ):
        yield _compared("training, 16 pairs a step", training["training"], title, training[name], aim)
    share = training["training"]["share_of_sgemm"]
    yield "training, share of the matrix product's rate", f"{share:.0%}", "", "", "", _verdict(share, 0.45, "45 %")
    options = speed["options"]["contenders"]
    title = "without the option"
    for name, what in (
        ("training-bf16", "training with `--bf16`"),
        ("training-frozen-embeddings", "training with `--freeze_embeddings`"),
        ("training-both", "training with `--bf16 --freeze_embeddings`"),
    ):
        yield _compared(what, options[name], title, options["training"], None)
    lora = speed["lora"]["contenders"]
    yield _compared("training with `--use_peft`", lora["training-lora"], title, lora["training"], None)
    what = "training with `--use_peft`, BERT-base's shape"
    yield _compared(what, lora["memory-lora"], title, lora["memory"], None)
    yield _memory("peak memory with `--use_peft`, MiniLM", lora["training-lora"], title, lora["training"])
    yield _memory("peak memory with `--use_peft`, BERT-base's shape", lora["memory-lora"], title, lora["memory"])
    half = speed["training-bf16"]["contenders"]
    title = "sentence-transformers, CosineSimilarityLoss, bfloat16"
    what = "training in bfloat16, 16 pairs a step"
    yield _compared(what, half["training-bf16"], title, half["training-st-bf16"], 2.3)
    start = speed["start"]["contenders"]
    ours_seconds, their_seconds = (1 / start[name]["rate"]["median"] for name in ("start", "start-st"))
    yield (
        "from the command to the first step, quick start",
        f"{ours_seconds:.1f} s",
        "sentence-transformers, the same pairs",
        f"{their_seconds:.1f} s",
        f"{their_seconds / ours_seconds:.1f}",
        _verdict(-ours_seconds, -START_SECONDS, f"{START_SECONDS:g} s"),
    )
    encoding = speed["encoding"]["contenders"]
    ours, ours_bf16 = encoding["encoding"], encoding["encoding-bf16"]
    best = max(ST_ENCODING, key=lambda name: encoding[name]["rate"]["median"])
    title = f"sentence-transformers' `encode`, its best batch size ({best.rsplit('-', 1)[1]})"
    yield _compared("encoding", ours, title, encoding[best], 1.3)
    yield _compared("encoding", ours, "ONNX Runtime", encoding["encoding-onnx"], None)
    title = "sentence-transformers' `encode`, bfloat16"
    yield _compared("encoding in bfloat16", ours_bf16, title, encoding["encoding-st-bf16"], None)
    title = "ONNX Runtime, 8-bit integers"
    yield _compared("encoding in bfloat16", ours_bf16, title, encoding["encoding-onnx-int8"], None)
    backend = speed["backend"]["contenders"]
    what = "encoding with `--backend onnx-int8`, without bfloat16 instructions"
    yield _compared(what, backend["encoding-int8"], "without the option", backend["encoding"], None)
    yield _compared(what, backend["encoding-int8"], title, backend["encoding-onnx-int8"], 1)
    evaluation = speed["evaluation"]["contenders"]
    yield _compared(
        "scoring pairs",
        evaluation["evaluation"],
        "sentence-transformers' EmbeddingSimilarityEvaluator",
        evaluation["evaluation-st"],
        1.3,
    )
    ours_seconds = DEVELOPMENT_PAIRS / evaluation["evaluation"]["rate"]["median"]
    paper_seconds = PAPER_PAIRS_PER_SCORE / evaluation["evaluation-paper"]["rate"]["median"]
    yield _timed("a development score", ours_seconds, "the paper's loop (all of STS-B)", paper_seconds, 60)
    frozen = speed["frozen"]["contenders"]
    ours, paper = frozen["frozen"], frozen["frozen-paper"]
    epoch, paper_epoch = ours["count"] / ours["rate"]["median"], ours["count"] / paper["rate"]["median"]
    first = ours["details"]["first_seconds"] + epoch
    yield _timed("frozen encoder, first epoch", first, "the paper's loop", paper_epoch, 30)
    yield _timed("frozen encoder, each further epoch", epoch, "the paper's loop", paper_epoch, 1000)
    matrix = speed["matrix"]["contenders"]
    title = "`torch.cdist` split by sign"
    yield _compared("learned score of all pairs", matrix["matrix"], title, matrix["matrix-cdist"], 8)
    search = speed["search"]["contenders"]
    title = "sentence-transformers' semantic_search, by the cosine"
    yield _compared("ten best of 50,000 by the cosine", search["search-cosine"], title, search["search-st"], 1)
    yield _compared("ten best of 50,000 by the head", search["search-head"], title, search["search-st"], None)


def explanations(speed: Speed) -> list[str]:
    """Sentences on the use of time and memory."""
    profiles = speed["profile"]["contenders"]
    shares, shares_bf16 = (
        ", ".join(f"`{name}` {share:.0%}" for name, share in list(profiles[name]["details"].items())[:6])
        for name in ("profile", "profile-bf16")
    )
    frozen = speed["frozen"]["contenders"]["frozen"]
    epoch, bare = frozen["count"] / frozen["rate"]["median"], frozen["details"]["seconds_without_trainer"]
    memory = speed["memory"]["contenders"]["memory"]
    parts = memory["details"]
    rest = memory["peak_memory_bytes"] - parts["libraries"] - parts["parameters"]
    return [
        f"Shares of a training step in float32: {shares}.",
        f"In bfloat16: {shares_bf16}.",
        f"With a frozen encoder, encoding takes {frozen['details']['first_seconds']:.1f} s of the first epoch. Each "
        f"further epoch takes {epoch:.2f} s: {bare:.2f} s for the head, the rest for Trainer.",
        f"Peak memory of training an encoder of BERT-base's shape: libraries {parts['libraries'] / 1e9:.2f} GB; "
        f"weights, gradients and Adam's moments {parts['parameters'] / 1e9:.2f} GB; activations and all else "
        f"{rest / 1e9:.2f} GB.",
        "The search corpus is 50,000 made-up vectors in clusters.",
    ]


def _compared(what: str, ours: Speed, against: str, theirs: Speed, aim: float | None) -> tuple[str, ...]:
    ratio = ours["rate"]["median"] / theirs["rate"]["median"]
    verdict = "" if aim is None else _verdict(ratio, aim, f"{aim:g}")
    return what, shown_rate(ours), against, shown_rate(theirs), f"{ratio:.1f}", verdict


def _memory(what: str, ours: Speed, against: str, theirs: Speed) -> tuple[str, ...]:
    sizes = ours["peak_memory_bytes"], theirs["peak_memory_bytes"]
    return what, f"{sizes[0] / 1e9:.2f} GB", against, f"{sizes[1] / 1e9:.2f} GB", f"{sizes[1] / sizes[0]:.1f}", ""


def _timed(what: str, ours: float, against: str, theirs: float, aim: float) -> tuple[str, ...]:
    ratio = theirs / ours
    return what, f"{ours:,.1f} s", against, f"{theirs:,.0f} s", f"{ratio:,.0f}", _verdict(ratio, aim, f"{aim:g}")


def shown_rate(contender: Speed) -> str:
    """A contender's median rate, with the smallest and the largest."""
    rate = contender["rate"]
    median, low, high = (_number(rate[name]) for name in ("median", "min", "max"))
    return f"{median} {contender['unit']} ({low}–{high})"


def _number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _verdict(value: float, aim: float, shown: str) -> str:
    return f"{shown}, reached" if value >= aim else f"{shown}, **missed**"
