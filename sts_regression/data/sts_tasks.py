"""Reads the seven English STS tasks from files in one of two layouts, or from the Hub.

The original layout has untokenised text: `sts/sts12.jsonl` … `sts/sts16.jsonl` (JSON lines with `subset`, `sentence1`,
`sentence2`, `score`), `stsbenchmark/sts-test.csv` and `sick/SICK_test_annotated.txt`. SentEval's layout has tokenised,
lower-cased text: `STS/STS12-en-test/STS.input.MSRpar.txt` beside `STS.gs.MSRpar.txt` and so on, `STS/STSBenchmark` and
`SICK`.

Every task must have the known number of pairs: scores on other pairs are not comparable.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from datasets import Dataset, concatenate_datasets

from sts_regression.data.labels import STS_SCALE
from sts_regression.data.pairs import SUBSET_COLUMN, PairSet, pairs_of_rows, read_pairs
from sts_regression.data.rows import Row, read_lines, read_rows
from sts_regression.data.sources import load_hub_pairs
from sts_regression.options.data_arguments import SICK_SPLITS, STSB_VERSIONS

SEMEVAL_YEARS = ("12", "13", "14", "15", "16")
STSB, SICKR = "STS-B", "SICK-R"
TASK_NAMES = (*(f"STS{year}" for year in SEMEVAL_YEARS), STSB, SICKR)
# STS13 without its SMT subset, which needs a licence; published numbers leave it out, too.
EXPECTED_PAIRS = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186, STSB: 1379, SICKR: 4927}
SICK_FILES = {"train": "SICK_train.txt", "trial": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
GENRE_COLUMN = "genre"
STSB_GENRE_COLUMN = "file"  # in the original files of STS-B, whose column `genre` is coarser
SENTEVAL_SURPRISE = "surprise."  # prefix of two subsets of STS12, in SentEval's tree only
ALL_OF_SICK = 9927
STSB_VERSION_2_PAIRS = 1362
HUB = "hub"  # in place of a folder
HUB_SETS = {f"STS{year}": f"mteb/sts{year}-sts" for year in SEMEVAL_YEARS} | {
    STSB: "mteb/stsbenchmark-sts",
    SICKR: "mteb/sickr-sts",
}
STSB_VERSION_2_ON_HUB = "mteb/STSBenchmarkv2"
TASK_FOLDERS = {"original": ("sts", "stsbenchmark", "sick"), "senteval": ("STS", "SICK"), HUB: ()}  # by layout
# Places of the SentEval tree in a folder: the folder itself, a copy beside other data, the toolkit's `data` folder.
SENTEVAL_ROOTS = ("", "senteval", "downstream")


@dataclass(frozen=True)
class STSTask:
    """
    Pairs of one task.

    Attributes:
        name: "STS12" … "STS16", "STS-B", "SICK-R".
        pairs: `Dataset` with `sentence1`, `sentence2`, `label` (on the task's own scale), `subset` (empty if the task
            has no subsets) and `genre` (the subset; in STS-B, the SemEval subset that the pair comes from; empty if
            unknown).
        parts: the sets that make up the task.
    """

    name: str
    pairs: Dataset
    parts: Sequence[PairSet]


def load_sts_tasks(source: str | Path, sick_split: str = "test", stsb_version: int = 1) -> list[STSTask]:
    """
    Reads the seven tasks.

    Args:
        source: a folder in one of the two layouts (if it has both, the original text is read), or `"hub"` for MTEB's
            data sets on the Hub.
        sick_split: "test" for the 4,927 pairs that papers score, "all" for the 9,927 that MTEB scores.
        stsb_version: 1 for all 1,379 test pairs of STS-B, as in published numbers; 2 for the 1,362 of MTEB's
            `STSBenchmark.v2`, see [`without_repeats`]. Version 2 from a folder needs the other two splits, too.

    Raises:
        ValueError: for a folder in neither layout, a missing or damaged file, or a task with another number of pairs
            than known.
    """
    if sick_split not in SICK_SPLITS:
        raise ValueError(f"`sick_split` must be one of {', '.join(SICK_SPLITS)}, but is {sick_split!r}.")
    if stsb_version not in STSB_VERSIONS:
        raise ValueError(f"`stsb_version` must be {' or '.join(map(str, STSB_VERSIONS))}, but is {stsb_version!r}.")
    layout, folder = find_layout(source)
    if layout == HUB:
        if sick_split != "all":
            raise ValueError(
                f"`sick_split`: {HUB_SETS[SICKR]} on the Hub holds all 9,927 pairs of SICK and does not mark "
                "the test split. Give `--sick_split all`, or a folder with `--sts_data`."
            )
        hub_sets = HUB_SETS | ({STSB: STSB_VERSION_2_ON_HUB} if stsb_version == 2 else {})
        parts = {name: [_hub_test_split(hub_set)] for name, hub_set in hub_sets.items()}
    else:
        is_original = layout == "original"
        stsb = folder / ("stsbenchmark" if is_original else "STS/STSBenchmark")
        sick = folder / ("sick" if is_original else "SICK")
        sick_files = SICK_FILES.values() if sick_split == "all" else [SICK_FILES["test"]]
        parts = {
            **{f"STS{year}": _semeval(folder, year, is_original) for year in SEMEVAL_YEARS},
            STSB: [_stsb_version_2(stsb) if stsb_version == 2 else _stsb(stsb / "sts-test.csv")],
            SICKR: [read_pairs(sick / file) for file in sick_files],
        }
    tasks = [STSTask(name, _joined(sets), sets) for name, sets in parts.items()]
    expected = dict(EXPECTED_PAIRS)
    if sick_split == "all":
        expected[SICKR] = ALL_OF_SICK
    if stsb_version == 2:
        expected[STSB] = STSB_VERSION_2_PAIRS
    for task in tasks:
        if len(task.pairs) != expected[task.name]:
            raise ValueError(
                f"{source}: {task.name} holds {len(task.pairs):,} scored pairs, but {expected[task.name]:,} are known "
                "to belong to it. Scores on other pairs would not be comparable; fetch the files again."
            )
    return tasks


def read_senteval_subset(path: Path) -> PairSet:
    """
    Reads `STS.input.<subset>.txt` from the SentEval toolkit's download, and `STS.gs.<subset>.txt` beside it.

    Pairs without a gold score are skipped.

    Raises:
        ValueError: if the gold file is missing or has another number of lines, or if a line is not a pair.
    """
    subset = path.name.removeprefix("STS.input.").removesuffix(".txt")
    gold_path = path.with_name(f"STS.gs.{subset}.txt")
    if not gold_path.is_file():
        raise ValueError(f"{gold_path}: no such file. It belongs beside {path.name}; fetch the tree again.")
    texts, gold = ([line.rstrip("\r\n") for line in read_lines(file)] for file in (path, gold_path))
    if len(texts) != len(gold):
        raise ValueError(f"{gold_path}: {len(gold):,} lines for {len(texts):,} pairs. Fetch the tree again.")

    def rows() -> Iterator[Row]:
        for line, (text, score) in enumerate(zip(texts, gold, strict=True), start=1):
            if score.strip():
                fields = text.split("\t")
                if len(fields) < 2:
                    raise ValueError(f"{path}: line {line} is not a pair of sentences separated by a tab.")
                yield line, {"sentence1": fields[0], "sentence2": fields[1], "score": score, SUBSET_COLUMN: subset}

    available = ["sentence1", "sentence2", "score", SUBSET_COLUMN]
    return pairs_of_rows(str(path), available, rows(), scale=STS_SCALE)


def without_repeats(pairs: PairSet, other_splits: Sequence[PairSet]) -> PairSet:
    """
    The pairs of a split that occur once in it and in no other split, as MTEB cleaned STS-B.

    Two pairs are the same if they have the same two sentences, in either order. Case and white space count. If a pair
    occurs twice in the split, both copies are removed. See
    [MTEB's pull request](https://github.com/embeddings-benchmark/mteb/pull/4876).

    Args:
        pairs: the split.
        other_splits: the other splits of its corpus.
    """
    elsewhere = {pair for split in other_splits for pair in _unordered(split)}
    own = _unordered(pairs)
    times = Counter(own)
    kept = [row for row, pair in enumerate(own) if times[pair] == 1 and pair not in elsewhere]
    return replace(pairs, pairs=pairs.pairs.select(kept))


def _unordered(pairs: PairSet) -> list[frozenset[str]]:
    columns = pairs.pairs[:]
    return list(map(frozenset, zip(columns["sentence1"], columns["sentence2"], strict=True)))


def _stsb_version_2(folder: Path) -> PairSet:
    try:
        train, dev, test = (_stsb(folder / f"sts-{split}.csv") for split in ("train", "dev", "test"))
    except ValueError as error:
        raise ValueError(
            f"`stsb_version` 2 compares the test pairs of STS-B with its other splits. {error} Or give "
            "`--stsb_version 1`, which needs the test pairs alone."
        ) from error
    clean = without_repeats(test, [train, dev])
    return replace(clean, name=f"{test.name} (version 2)")


def find_layout(source: str | Path) -> tuple[str, Path]:
    """
    The layout of a folder ("original" or "senteval") and the folder in which it begins; "hub" for the Hub.

    Raises:
        ValueError: if the folder has neither layout.
    """
    folder = Path(source)
    if str(source) == HUB:
        return HUB, folder
    with suppress(OSError):  # raised for a name that no folder can have
        if (folder / "sts" / "sts12.jsonl").is_file():
            return "original", folder
        for root in SENTEVAL_ROOTS:
            if (folder / root / "STS" / "STS12-en-test").is_dir():
                return "senteval", folder / root
    raise ValueError(
        f"`sts_data`: {str(source)!r} holds neither sts/sts12.jsonl nor SentEval's STS/STS12-en-test. Give the folder "
        f"above these, or `{HUB}` to fetch the data from the Hub."
    )


def task_files(source: str | Path | None) -> list[Path]:
    """The files of the tasks in a folder, which no output may replace."""
    if source is None:
        return []
    layout, folder = find_layout(source)
    return [path for name in TASK_FOLDERS[layout] for path in (folder / name).rglob("*")]


def _hub_test_split(name: str) -> PairSet:
    pairs = load_hub_pairs(name, "test")
    if pairs is None:
        raise ValueError(f"`sts_data`: {name!r} on the Hub has no test split. Give a folder.")
    return pairs


def _semeval(folder: Path, year: str, is_original: bool) -> list[PairSet]:
    if is_original:
        return [read_pairs(folder / "sts" / f"sts{year}.jsonl")]
    inputs = sorted((folder / "STS" / f"STS{year}-en-test").glob("STS.input.*.txt"))
    # Some copies of the tree also hold a file of all subsets.
    return [read_senteval_subset(path) for path in inputs if path.name != "STS.input.ALL.txt"]


def _stsb(path: Path) -> PairSet:
    """STS-B's pairs with their `genre`, if the file has it."""
    pair_set = read_pairs(path)
    genre_of_line = {line: str(row.get(STSB_GENRE_COLUMN) or "") for line, row in read_rows(path)}
    genres = [genre_of_line[line] for line in pair_set.pairs["line"]]
    return replace(pair_set, pairs=pair_set.pairs.add_column(GENRE_COLUMN, genres))


def _joined(sets: Sequence[PairSet]) -> Dataset:
    parts = []
    for pair_set in sets:
        pairs = pair_set.pairs
        if SUBSET_COLUMN not in pairs.column_names:
            pairs = pairs.add_column(SUBSET_COLUMN, [""] * len(pairs))
        if GENRE_COLUMN not in pairs.column_names:
            genres = [subset.removeprefix(SENTEVAL_SURPRISE) for subset in pairs[:][SUBSET_COLUMN]]
            pairs = pairs.add_column(GENRE_COLUMN, genres)
        parts.append(pairs.select_columns(["sentence1", "sentence2", "label", SUBSET_COLUMN, GENRE_COLUMN]))
    return concatenate_datasets(parts)
