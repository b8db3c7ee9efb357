"""Shared parts of the tests: a small tokenizer, tiny encoders, fresh processes, drawn cases, and counts for a report.

Nothing here downloads anything. Configurations are made anew for each test, because tests may change them.
"""

import csv
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from huggingface_hub import constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertConfig, BertModel, PretrainedConfig, PreTrainedTokenizerBase

import run_sts
from sts_regression.basics import stopping
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import sts_tasks
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.sentence_transformers_files import write_modules
from sts_regression.training.trainer import STSTrainer

if "PYTEST_XDIST_WORKER" in os.environ:  # a process for each core: threads would wait for each other
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"

OUTPUTS = "outputs"  # where runs go by default
FIXTURES = Path(__file__).parent / "fixtures"
ROOT = FIXTURES.parent.parent

# Hides the helper package from a fresh process even where it is installed into the environment.
HIDE_PACKAGE = "import sys; sys.modules['sts_regression'] = None\n"
SUBPROCESS_TIMEOUT = 300  # seconds

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Cases drawn by `fuzz`: few in every run of the tests, thousands in a slow one.
FEW, THOUSANDS = 40, 2000
LONGEST_MESSAGE = 1500  # characters of an error that a person is to read
HANGS_AFTER = 60  # seconds

# The seven STS tasks with few pairs of made-up text.
SMALL_TASK_PAIRS = 12
SUBSETS = ("first", "second")
WORDS = ("cat", "dog", "man", "park", "water", "house", "red", "big")
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"


@pytest.fixture(scope="session", autouse=True)
def _same_arithmetic_on_all_processors() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cpu, "get_capabilities", dict)
        yield


@pytest.fixture(autouse=True)
def _without_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps libraries from asking the Hub, which takes five seconds each time where there is no network."""
    if request.node.get_closest_marker("network") is None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the repository, without its `outputs`."""
    folder = tmp_path_factory.mktemp("repository")
    for path in ROOT.iterdir():
        if path.name != OUTPUTS:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(autouse=True)
def work_in_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither reads nor writes the developer's own runs."""
    monkeypatch.chdir(repository)
    yield
    shutil.rmtree(repository / OUTPUTS, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def without_bundled_start() -> Iterator[None]:
    """Trains few own pairs without the bundled ones before them, which takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sts_regression.command.stages._after_bundled_pairs", lambda last, stages: stages)
        yield


@pytest.fixture(autouse=True)
def keep_threads() -> Iterator[None]:
    """`--cpu_threads` of one test does not slow the others down."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerBase:
    """The committed WordPiece tokenizer, lower-case, with the special tokens of BERT."""
    return AutoTokenizer.from_pretrained(FIXTURES / "tokenizer")


def build_tiny_encoder_config(tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    return BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=len(tokenizer),
        max_position_embeddings=128,
    )


@pytest.fixture
def tiny_encoder_config(tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    """A BERT of two layers that fits the tokenizer; dropout as in BERT."""
    return build_tiny_encoder_config(tokenizer)


@pytest.fixture(scope="session")
def tiny_encoder_path(tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerBase) -> Path:
    """A folder with a tiny BERT of fixed random weights and its tokenizer, to train from."""
    folder = tmp_path_factory.mktemp("tiny-encoder")
    torch.manual_seed(0)
    BertModel(build_tiny_encoder_config(tokenizer), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def resumable(tiny_encoder_path: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """`resumable(folder, *more)`: options of nine steps in three epochs, which continue the run in the folder."""
    words = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
    pairs = tmp_path / "pairs.csv"
    with pairs.open("w", newline="") as file:
        rows = [[f"the {words[i % 8]} {words[i % 5]}", f"a {words[(i * i) % 8]}", i % 6] for i in range(24)]
        csv.writer(file).writerows([["sentence1", "sentence2", "label"], *rows])
    common = [f"--train_file={pairs}", f"--validation_file={pairs}", "--leak_filter=none", "--report_to=none"]
    common += [f"--model_name_or_path={tiny_encoder_path}", "--learning_rate=1e-3", "--disable_tqdm=true"]
    common += ["--per_device_train_batch_size=8", "--num_train_epochs=3", "--resume_from_checkpoint=true"]
    common += ["--bundled_pairs_first=false"]
    return lambda folder, *more: [*common, f"--output_dir={folder}", *more]


@pytest.fixture(scope="session")
def options_of_three_steps(tiny_encoder_path: Path) -> Callable[[Path], list[str]]:
    """`options_of_three_steps(folder)`: of epochs with three steps and a checkpoint; writes their `pairs.csv`."""

    def write(folder: Path) -> list[str]:
        pairs = folder / "pairs.csv"
        rows = [(f"the cat number {i % 7}", f"a dog number {(i * i) % 5}", i % 6) for i in range(24)]
        with pairs.open("w", newline="") as file:
            csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
        common = [f"--train_file={pairs}", f"--validation_file={pairs}", "--leak_filter=none", "--report_to=none"]
        common += [f"--model_name_or_path={tiny_encoder_path}", "--disable_tqdm=true"]
        return [*common, "--per_device_train_batch_size=8", "--save_strategy=epoch"]

    return write


@pytest.fixture
def pairs_file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A CSV file with the pairs that the test module calls `ROWS`."""
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *request.module.ROWS])
    return str(path)


@pytest.fixture
def train_in(tiny_encoder_path: Path, tmp_path: Path) -> Callable[..., Callable[..., Path]]:
    """`train_in(pairs_file, *options)(*more)`: an epoch of inner runs on own pairs; the folder of the run."""

    def with_options(pairs_file: str, *options: str) -> Callable[..., Path]:
        def start(*more: str, output_dir: Path = tmp_path / "run") -> Path:
            common = [f"--train_file={pairs_file}", f"--model_name_or_path={tiny_encoder_path}", "--report_to=none"]
            common += [f"--output_dir={output_dir}", "--num_train_epochs=1", "--disable_tqdm=true"]
            run_sts.run_stages([*common, f"--embedding_cache={tmp_path / 'embeddings'}", *options, *more])
            return output_dir

        return start

    return with_options


@pytest.fixture
def killed_training(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Path], int], list[str]]:
    """`killed_training(run, number)`: kills `run()` in that training; the folders trained in, then and later."""

    def kill(run: Callable[..., Path], number: int) -> list[str]:
        trained: list[str] = []
        train = STSTrainer.train

        def dying(trainer: STSTrainer, *args: Any, **kwargs: Any) -> Any:
            trained.append(Path(trainer.args.output_dir or "").name)
            if len(trained) == number:
                raise KeyboardInterrupt("a training")
            return train(trainer, *args, **kwargs)

        monkeypatch.setattr(STSTrainer, "train", dying)
        with pytest.raises(KeyboardInterrupt, match="a training"):
            run()
        return trained

    return kill


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process listens as that of a command does, until the test ends."""
    monkeypatch.setattr(stopping, "_requests", stopping._Requests())
    numbers = [getattr(signal, name) for name in stopping.SIGNALS]
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells switch off in the background
    stopping.listen()
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


class Harm:
    """Pickled, it makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def harm_in() -> Callable[[Path], object]:
    """`harm_in(folder)`: pickled, it makes the folder when it is read."""
    return Harm


@pytest.fixture
def make_model(tiny_encoder_config: BertConfig) -> Callable[..., STSRegressionModel]:
    """`make_model(**options)`: an STSRegressionModel with fixed random weights, in evaluation mode."""

    def make(
        encoder_config: PretrainedConfig | None = None,
        model_class: type[STSRegressionModel] = STSRegressionModel,
        **options: Any,
    ) -> STSRegressionModel:
        torch.manual_seed(0)
        config = STSRegressionConfig(encoder_config=encoder_config or tiny_encoder_config, **options)
        return model_class(config).eval()

    return make


@pytest.fixture(scope="session")
def save_checkpoint() -> Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path]:
    """`save_checkpoint(model, tokenizer, folder)`: the folder, with the files of a model that the command leaves."""

    def save(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> Path:
        model.save_pretrained(folder)
        write_modules(folder, model.config, tokenizer)
        return folder

    return save


@pytest.fixture(scope="session")
def run_in_subprocess(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """`run_in_subprocess(code, *arguments, cwd=None, env=None)`: the output of the code in a fresh process.

    The process starts outside the repository, cannot import the helper package, is offline, has nothing on its
    standard input and begins with an empty cache of code from checkpoints. `cwd` defaults to an empty folder; `env` is
    added to the environment. The test fails with the process's error output if the process fails.
    """

    def run(code: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_MODULES_CACHE": str(tmp_path_factory.mktemp("modules-cache")),
            "TRANSFORMERS_VERBOSITY": "error",
            **(env or {}),
        }
        process = subprocess.run(
            [sys.executable, "-c", HIDE_PACKAGE + code, *map(str, arguments)],
            cwd=cwd or tmp_path_factory.mktemp("working-directory"),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SUBPROCESS_TIMEOUT,
        )
        if process.returncode != 0:
            pytest.fail(f"the process ended with code {process.returncode}:\n{process.stderr}", pytrace=False)
        return process.stdout

    return run


@pytest.fixture
def open_browser() -> Callable[[], AbstractContextManager[Any]]:
    """`open_browser()`: a Chromium of this machine, driven by playwright; the test is skipped if either is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser extra is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser of {', '.join(BROWSERS)} on the path")

    @contextmanager
    def start() -> Iterator[Any]:
        with sync_api.sync_playwright() as playwright:
            # A container's root cannot have the browser's sandbox.
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            yield browser
            browser.close()

    return start


@pytest.fixture(scope="session")
def launch() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`launch(script, *arguments, num_processes=2, config=…)`: the script, run by several processes on the CPU.

    With `kill_after`, in seconds, the launcher and all processes are killed at that moment, unless they have ended.
    Their exit code and their output are for the test to judge.
    """

    def run(
        script: object,
        *arguments: object,
        num_processes: int = 2,
        config: Path = ROOT / "accelerate_configs" / "cpu_2_processes.yaml",
        kill_after: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        options = ["--config_file", config, "--num_processes", num_processes, "--main_process_port", 0]  # any free one
        command = [sys.executable, "-m", "accelerate.commands.launch", *map(str, (*options, script, *arguments))]
        with subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as launcher:
            try:
                printed = launcher.communicate(timeout=SUBPROCESS_TIMEOUT if kill_after is None else kill_after)
            except subprocess.TimeoutExpired:
                for process in (psutil.Process(launcher.pid), *psutil.Process(launcher.pid).children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                printed = launcher.communicate()
                if kill_after is None:
                    raise
            return subprocess.CompletedProcess(command, launcher.returncode, *printed)

    return run


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For a report of reliability, leaves the tests that count for it."""
    if os.environ.get("STS_RELIABILITY_REPORT"):
        counted = [item for item in items if "reliability" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in counted])
        items[:] = counted


@pytest.fixture
def reliability(request: pytest.FixtureRequest) -> Callable[[str, int, int, int], None]:
    """`reliability(kind, tried, accepted, refused)`: the counts of a test of reliability, for the report.

    Adds a line of JSON, `{"test": …, "kind": …, "tried": …, "accepted": …, "refused": …}`, to the file that the
    environment variable `STS_RELIABILITY_REPORT` names, if any. `kind` describes the cases; `accepted` counts
    cases that were accepted and checked (of interruptions: survived), `refused` those that ended with the expected
    error.
    """

    def report(kind: str, tried: int, accepted: int, refused: int) -> None:
        if path := os.environ.get("STS_RELIABILITY_REPORT"):
            counts = {"tried": tried, "accepted": accepted, "refused": refused}
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"test": request.node.nodeid, "kind": kind, **counts}) + "\n")

    return report


class Attempts:
    """Counts accepted and rightly refused inputs."""

    def __init__(self) -> None:
        self.accepted = self.refused = 0

    def __call__(self, call: Callable[[], Any], *places: object) -> Any:
        """The call's result; `None` if it raises a `ValueError` of one line that names one of the places."""
        signal.signal(signal.SIGALRM, lambda *_: pytest.fail("hangs"))
        signal.alarm(HANGS_AFTER)
        refusal = None
        try:
            result = call()
        except ValueError as error:
            refusal = error
        finally:
            signal.alarm(0)
        if refusal is None:
            self.accepted += 1
            return result
        message = str(refusal)
        assert type(refusal) is ValueError, repr(refusal)  # none that a library meant for its caller
        assert any(str(place) in message for place in places), message
        assert len(message.splitlines()) == 1, message
        assert len(message) < LONGEST_MESSAGE, message
        self.refused += 1
        return None


@pytest.fixture(params=[FEW, pytest.param(THOUSANDS, marks=pytest.mark.slow)], ids=["few", "thousands"])
def fuzz(request: pytest.FixtureRequest, reliability: Callable[[str, int, int, int], None]) -> Callable[..., None]:
    """`fuzz(kind, check, *strategies)`: `check(attempt, *drawn)` for many cases; see `Attempts`, and `reliability`.

    Where a case takes long, `share` makes them fewer.
    """

    def run(kind: str, check: Callable[..., None], *strategies: st.SearchStrategy[Any], share: float = 1.0) -> None:
        attempt = Attempts()
        is_small = request.param == FEW

        @settings(
            max_examples=round(share * request.param),
            derandomize=is_small,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.tuples(*strategies))
        def run_case(drawn: tuple[Any, ...]) -> None:
            check(attempt, *drawn)

        run_case()
        reliability(kind, attempt.accepted + attempt.refused, attempt.accepted, attempt.refused)

    return run


def damage(content: bytes, seed: int) -> bytes:
    """The content with parts deleted, doubled or overwritten, often with invalid bytes; or cut off."""
    draw = random.Random(seed)
    if draw.random() < 0.1:
        return content[: draw.randrange(len(content) + 1)]
    for _ in range(draw.randint(1, 2)):
        start, length = draw.randrange(len(content) + 1), draw.choice((0, 1, 3, 30))
        part = content[start : start + length]
        odd = draw.choice(
            (b"\0", b"\r", b"\r\n", b'"', b",", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"nan", b"1e400")
        )
        part = draw.choice((b"", part * 2, draw.randbytes(1), draw.choice((b"x", b"7", b" ", "é".encode())), odd))
        content = content[:start] + part + content[start + length :]
    return content


def read_number(label: Any) -> float | None:
    """The value of a label, by decimal arithmetic; `None` if it is not a number."""
    if isinstance(label, bool) or not isinstance(label, int | float | str) or "_" in str(label):
        return None
    try:
        number = float(Decimal(label))
    except (InvalidOperation, OverflowError):
        return None
    return number if math.isfinite(number) else None


@pytest.fixture
def as_number() -> Callable[[Any], float | None]:
    """`as_number(label)`: the number that a label stands for."""
    return read_number


@pytest.fixture
def damaged() -> Callable[[bytes, int], bytes]:
    """`damaged(content, seed)`: a damaged file."""
    return damage


def small_task(number: int) -> list[tuple[str, str, float]]:
    """Pairs with a score on 0-5, which the number of the task makes different from those of the others."""
    return [
        (
            f"The {WORDS[i % 8]} {WORDS[(i + number) % 7]}, {number}.",
            f"A {WORDS[(i * i + number) % 8]} {number}.",
            float((i * i + i + number) % 5),
        )
        for i in range(SMALL_TASK_PAIRS)
    ]


def write_small_sts_data(folder: Path) -> None:
    """The tasks in both layouts: original text in the folder itself, SentEval's tree in its `senteval`."""
    for number, year in enumerate(("12", "13", "14", "15", "16")):
        pairs = small_task(number)
        write(folder / "sts" / f"sts{year}.jsonl", semeval_lines(pairs))
        for start, subset in zip((0, SMALL_TASK_PAIRS // 3), SUBSETS, strict=True):
            part = pairs[start : SMALL_TASK_PAIRS // 3 if start == 0 else None]
            place = folder / "senteval" / "STS" / f"STS{year}-en-test"
            # A pair without a score, as annotators left some out.
            write(place / f"STS.input.{subset}.txt", [f"{first}\t{second}" for first, second, _ in part] + ["x\ty"])
            write(place / f"STS.gs.{subset}.txt", [*(str(score) for *_, score in part), ""])
    stsb = [f"main\tfile\t2012\t{i}\t{s}\t{a}\t{b}" for i, (a, b, s) in enumerate(small_task(5))]
    for name in ("train", "dev", "test"):
        for root in ("stsbenchmark", "senteval/STS/STSBenchmark"):
            write(folder / root / f"sts-{name}.csv", stsb if name == "test" else [f"{line} {name}" for line in stsb])
    for name in ("SICK_train", "SICK_trial", "SICK_test_annotated"):
        rows = [f"{i}\t{a}\t{b} {name}\t{1 + 0.8 * s}\tNEUTRAL" for i, (a, b, s) in enumerate(small_task(6))]
        for root in ("sick", "senteval/SICK"):
            write(folder / root / f"{name}.txt", [SICK_HEADER, *rows])


def semeval_lines(pairs: list[tuple[str, str, float]]) -> list[str]:
    subsets = [SUBSETS[int(i >= SMALL_TASK_PAIRS // 3)] for i in range(len(pairs))]
    return [
        json.dumps({"subset": subset, "sentence1": first, "sentence2": second, "score": score})
        for subset, (first, second, score) in zip(subsets, pairs, strict=True)
    ]


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def small_sts_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the seven STS tasks in both layouts, 12 pairs of made-up text each, and their numbers expected."""
    folder = tmp_path / "sts-data"
    write_small_sts_data(folder)
    monkeypatch.setattr(sts_tasks, "EXPECTED_PAIRS", dict.fromkeys(sts_tasks.TASK_NAMES, SMALL_TASK_PAIRS))
    monkeypatch.setattr(sts_tasks, "ALL_OF_SICK", 3 * SMALL_TASK_PAIRS)
    return folder
