"""The benchmark for GPUs, as far as a CPU can try it: a tiny model, few steps, and made-up results."""

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu, gpu_contenders
from benchmarks.fresh_process import measure_in_fresh_process
from benchmarks.gpu import GPU_SHAPES, all_pieces, pieces_named
from benchmarks.gpu_contenders import GpuSettings, cause, fitting_configs, run_gpu_tests
from benchmarks.made_up import bundled_words, random_pairs, word_tokenizer
from benchmarks.tables.gpu_report import gpu_page, gpu_summary

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"device": "Some GPU", "driver": "580.1", "torch": "2.13.0", "transformers": "5.23.0"}


@pytest.fixture
def settings() -> Any:
    return GpuSettings(device="cpu", batch_sizes=[4], steps=2, rounds=2, sentences=100, seconds=100)


# The command


@pytest.fixture
def measured_pieces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pieces that were measured, in a process that is only played; one of encoding fails."""
    measured = []

    def measure(script: str, arguments: list[str], *_: Any) -> dict[str, Any]:
        if script == "tables/gpu_report.py":
            return {}
        if arguments[0].startswith("encoding"):
            raise RuntimeError("a traceback\nModuleNotFoundError: No module named 'datasets'\n")
        measured.append(arguments[0])
        return {"environment": ENVIRONMENT, "result": {"steps": json.loads(arguments[1])["steps"]}}

    monkeypatch.setattr(gpu, "measure_in_fresh_process", measure)
    monkeypatch.setattr(gpu, "missing_packages", list)
    return measured


def run(*words: str) -> None:
    gpu.main([*words, "--device=cpu", "--shapes=tiny"])


def test_a_piece_that_is_done_is_not_repeated(
    measured_pieces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = f"--output_dir={tmp_path}"
    run("training-tiny-bf16", "tests", folder, "--steps=3")
    assert measured_pieces == ["tests", "training-tiny-bf16"]
    run("tests", "training", folder, "--steps=4")
    assert measured_pieces[2:] == ["training-tiny-float32", "training-tiny-tf32", "training-tiny-compile"]
    assert "training-tiny-bf16: done before\n" in capsys.readouterr().out
    kept = json.loads((tmp_path / "training.json").read_text())
    assert {piece: record["result"]["steps"] for piece, record in kept.items()} == {
        "training-tiny-bf16": 3,
        "training-tiny-float32": 4,
        "training-tiny-tf32": 4,
        "training-tiny-compile": 4,
    }
    run("training-tiny-bf16", folder, "--steps=5", "--overwrite")
    assert json.loads((tmp_path / "training.json").read_text())["training-tiny-bf16"]["settings"]["steps"] == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tests.json", "training.json"]


def test_a_piece_that_fails_is_named_in_a_line_and_tried_again(
    measured_pieces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with pytest.raises(SystemExit, match="1"):
            run("encoding", "launches", f"--output_dir={tmp_path}")
        line = "encoding-tiny: failed: ModuleNotFoundError: No module named 'datasets'\n"
        assert line in capsys.readouterr().out
    assert measured_pieces == ["launches"]
    assert not (tmp_path / "encoding.json").exists()


def test_without_a_gpu_only_the_table_is_written(
    measured_pieces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="1"):
        gpu.main(["tests", "table", f"--output_dir={tmp_path}"])
    assert capsys.readouterr().out == "No CUDA device: of tests, table only `table` can run.\ntable …\n"
    assert measured_pieces == []


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "is_installed", lambda package: package not in ("datasets", "scipy", "flash_attn"))
    assert gpu.missing_packages() == ["datasets", "scipy", "flash_attn"]
    monkeypatch.undo()
    assert gpu.is_installed("torch")
    assert not gpu.is_installed("no-such-package")


def test_an_unknown_piece_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("training-large")
    assert "unknown piece 'training-large'; known are all, tests, training-tiny-bf16" in capsys.readouterr().err


def test_all_pieces_end_with_the_table() -> None:
    pieces = list(pieces_named(["all"], GPU_SHAPES))
    assert pieces == all_pieces(GPU_SHAPES)
    assert len(pieces) == len(set(pieces)) == 1 + 3 * 3 + 3 + 1 + 3 + 1
    assert pieces[-1] == "table"


def test_a_fresh_process_keeps_the_paths_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("import json, os\nprint('hello')\nprint(json.dumps(os.environ['PYTHONPATH'].split(os.pathsep)))")
    monkeypatch.setenv("PYTHONPATH", "/wheels")
    assert measure_in_fresh_process(str(script), [], {}) == [str(ROOT), "/wheels"]
    monkeypatch.delenv("PYTHONPATH")
    assert measure_in_fresh_process(str(script), [], {}) == [str(ROOT)]


def test_a_fresh_process_that_fails_or_hangs_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, sys\nsubprocess.run(['sleep', '60']) if sys.argv[1:] else sys.exit('no GPU')"
    )
    with pytest.raises(RuntimeError, match=r"^script.py: no GPU$"):
        measure_in_fresh_process(str(script), [], {})
    with pytest.raises(RuntimeError, match=r"^script.py sleep: took longer than 0.5 s$"):
        measure_in_fresh_process(str(script), ["sleep"], {}, seconds=0.5)


# Measurements


def test_sentences_are_as_long_as_those_of_sts_b() -> None:
    pairs = random_pairs(1000)[:]
    encoded = word_tokenizer(bundled_words())([*pairs["sentence1"], *pairs["sentence2"]])["input_ids"]
    lengths = [len(ids) for ids in encoded]
    # STS-B: 14.4 ± 7.3, median 12.
    assert statistics.mean(lengths) == pytest.approx(14.4, abs=0.5)
    assert statistics.stdev(lengths) == pytest.approx(7.3, abs=0.5)
    assert statistics.median(lengths) == 12
    assert not any(1 in ids for ids in encoded)  # no unknown word
    assert set(pairs["label"]) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.slow
def test_both_trainers_are_measured(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    from transformers import Trainer

    train_step, steps = Trainer.training_step, []

    def note_step(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        steps.append((type(trainer).__name__, trainer.accelerator.mixed_precision, getattr(trainer, "_mixes", None)))
        return train_step(trainer, *args, **kwargs)

    monkeypatch.setattr(Trainer, "training_step", note_step)
    result = gpu_contenders.measure_piece("training-tiny-bf16", settings)
    assert result.pop("4 library-flash").keys() == {"missing"}
    assert list(result) == ["4 ours", "4 padded", "4 library"]
    for record in result.values():
        assert record["rate"]["min"] > 0
        assert (record["unit"], record["rounds"], record["peak_gpu_bytes"]) == ("pairs/s", 2, None)
    # Two warm-up intervals and the step that begins them; both trainers in bfloat16, each in its own way.
    one_round = [("STSTrainer", "no", True)] * 10 + [("SentenceTransformerTrainer", "bf16", None)] * 5
    assert steps == one_round * 2


def test_all_encoders_give_the_same_embeddings(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(gpu_contenders, "LIBRARY_BATCHES", (32,))
    result = gpu_contenders.measure_piece("encoding-tiny", settings)
    assert result.pop("bf16 library-flash-32") == {"missing": "flash_attn"}
    differences = {name: record["largest_difference"] for name, record in result.items()}
    for name in ("float32 padded", "float32 ours", "float32 library-32"):
        assert differences.pop(name) < 1e-5
    assert sorted(differences) == ["bf16 library-32", "bf16 ours", "bf16 padded"]
    assert all(0 < difference < 0.1 for difference in differences.values())


def test_contenders_take_turns_until_they_fail_or_time_is_up(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    def contender(name: str, *rates: float) -> Callable[[], dict[str, Any]]:
        left = list(rates)

        def measure() -> dict[str, Any]:
            turns.append(name)
            if not left:
                raise RuntimeError("out of memory\nmore")
            return {"rate": left.pop(0), "unit": "pairs/s"}

        return measure

    monkeypatch.setattr(gpu_contenders.time, "perf_counter", lambda: float(len(turns)))
    limited = gpu_contenders.GpuSettings(**{**vars(settings), "rounds": 3, "seconds": 6})
    contenders = {
        "fast": contender("fast", 4.0, 2.0, 9.0),
        "broken": contender("broken"),
        "slow": contender("slow", 1),
    }
    result = gpu_contenders.interleaved(contenders, limited)
    assert turns == ["fast", "broken", "slow", "fast", "slow", "fast"]
    assert result["fast"]["rate"] == {"median": 4.0, "min": 2.0, "max": 9.0}
    assert result["broken"] == result["slow"] == {"error": "RuntimeError: out of memory"}
    none_left = gpu_contenders.GpuSettings(**{**vars(settings), "seconds": 0})
    assert gpu_contenders.interleaved(contenders, none_left)["slow"] == {"error": "no time was left"}


def test_tests_with_the_mark_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_made_up.py").write_text(
        "import pytest\n"
        "@pytest.mark.gpu\ndef test_passes(): pass\n"
        "@pytest.mark.gpu\ndef test_fails(): assert 1 + 1 == 3\n"
        "@pytest.mark.gpu\ndef test_skips(): pytest.skip('no')\n"
        "def test_without_the_mark(): raise RuntimeError\n"
    )
    result = run_gpu_tests(tmp_path)
    failures = result.pop("failures")
    assert result == {"passed": 1, "failed": 1, "skipped": 1}
    assert {test.rpartition("::")[2]: message for test, message in failures.items()} == {
        "test_fails": "assert (1 + 1) == 3"
    }
    (tmp_path / "test_broken.py").write_text("import no_such_module")
    result = run_gpu_tests(tmp_path)
    assert (result["passed"], result["failed"]) == (1, 2)
    assert "ModuleNotFoundError: No module named 'no_such_module'" in result["failures"].values()
    with pytest.raises(RuntimeError, match="pytest ended with code 4"):
        run_gpu_tests(tmp_path / "absent")


def test_the_cause_is_found_in_what_libraries_say() -> None:
    launcher = "Traceback:\n  File\nValueError: `x` is 1.\nTraceback:\nCalledProcessError: Command failed.\n"
    assert cause(launcher) == "ValueError: `x` is 1."
    assert cause("CUDA error: out of memory\nCUDA kernel errors might be late.") == "CUDA error: out of memory"
    assert cause("it took too long") == "it took too long"
    assert cause("") == "?"


def test_launch_files_for_one_machine_fit() -> None:
    assert fitting_configs("cuda") == ["deepspeed_zero2", "deepspeed_zero3", "fsdp2", "gpu_several", "one_process"]
    assert fitting_configs("cpu") == ["cpu_2_processes", "one_process"]


def test_a_launch_is_kept_with_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []
    loss = 1.5

    def play(command: list[str], *_: Any) -> str:
        commands.append(command)
        (folder,) = [word.partition("=")[2] for word in command if word.startswith("--output_dir=")]
        training = {"train_loss": loss}
        Path(folder).mkdir()
        (Path(folder) / "run.json").write_text(json.dumps({"training": training, "peak_memory_bytes": {"gpu": 7}}))
        return ""

    monkeypatch.setattr(gpu_contenders, "run_offline", play)
    assert gpu_contenders.launch("fsdp2", tmp_path) == {"loss": 1.5, "peak_gpu_bytes": 7}
    assert {"--num_processes=1", "--config_file=accelerate_configs/fsdp2.yaml", "run_sts.py"} <= set(commands[0])
    loss = math.inf
    with pytest.raises(RuntimeError, match="the loss is inf"):
        gpu_contenders.launch("fsdp2", tmp_path)
    monkeypatch.setattr(gpu_contenders.importlib.util, "find_spec", lambda name: None)
    assert gpu_contenders.measured(lambda: gpu_contenders.launch("deepspeed_zero2", tmp_path)) == {
        "missing": "deepspeed"
    }


@pytest.mark.slow
def test_the_command_measures_in_processes_of_their_own(tmp_path: Path) -> None:
    run("training-tiny-float32", "launches", "table", "--batch_sizes=4", "--steps=2", f"--output_dir={tmp_path}")
    page = (tmp_path / "gpu.md").read_text()
    assert "| tiny | float32 | 4 |" in page
    assert "| `one_process.yaml` | trains, mean loss " in page
    assert "failed" not in page


# The table


def rated(rate: float, unit: str = "pairs/s", **further: Any) -> dict[str, Any]:
    return {"rate": {"median": rate, "min": 0.9 * rate, "max": 1.1 * rate}, "unit": unit, **further}


def keep(folder: Path, file: str, piece: str, result: dict[str, Any], **settings: Any) -> None:
    record = {piece: {"environment": ENVIRONMENT, "settings": settings, "result": result}}
    (folder / f"{file}.json").write_text(json.dumps(record))


def test_without_results_every_section_says_so(tmp_path: Path) -> None:
    page = gpu_page(tmp_path)
    assert "Device: not measured." in page
    for title in ("Tests", "Training", "Encoding", "Launch files"):
        assert f"\n## {title}\n\nnot measured\n" in page


def test_the_kept_page_is_that_of_the_kept_results() -> None:
    folder = ROOT / "results" / "gpu"
    assert (folder / "gpu.md").read_text(encoding="utf-8") == gpu_page(folder)


def test_what_documents_say_of_precision_is_what_the_file_holds() -> None:
    training = json.loads((ROOT / "results" / "gpu" / "training.json").read_text(encoding="utf-8"))
    for size in (16, 64):
        full, half = (training[f"training-minilm-{name}"]["result"][f"{size} ours"] for name in ("float32", "bf16"))
        assert full["rate"]["max"] > half["rate"]["max"]
    said = "pads small batches on a GPU; with these, `--precision float32` trains faster than the default"
    assert said in " ".join((ROOT / "docs" / "speed.md").read_text(encoding="utf-8").split())


def test_the_page_compares_with_the_better_of_theirs(tmp_path: Path) -> None:
    keep(tmp_path, "tests", "tests", {"passed": 3, "failed": 1, "skipped": 0, "failures": {"a::b": "it broke"}})
    result = {
        "16 ours": rated(300, peak_gpu_bytes=2e9),
        "16 padded": rated(250),
        "16 library": rated(100, peak_gpu_bytes=4e9),
        "16 library-flash": rated(200),
        "64 ours": rated(600),
        "64 library": {"error": "OutOfMemoryError: a | b"},
        "64 library-flash": {"missing": "flash_attn"},
    }
    keep(tmp_path, "training", "training-bert-bf16", result, batch_sizes=[16, 64])
    result = {"float32 ours": rated(500, "sentences/s", largest_difference=1e-6), "float32 padded": rated(400)}
    result |= {"float32 library-32": rated(100), "float32 library-128": rated(250, largest_difference=2e-6)}
    result |= {"bf16 ours": rated(900), "bf16 padded": rated(800), "bf16 library-32": rated(300)}
    result["bf16 library-flash-32"] = {"missing": "flash_attn"}
    keep(tmp_path, "encoding", "encoding-minilm", result)
    launches = {"fsdp2": {"loss": 0.5, "peak_gpu_bytes": 1e9}, "zero2": {"missing": "deepspeed"}}
    keep(tmp_path, "launches", "launches", launches)
    page = gpu_page(tmp_path)
    assert "Device: Some GPU, driver 580.1, torch 2.13.0, transformers 5.23.0." in page
    assert "3 passed, 1 failed, 0 skipped.\n- `a::b`: it broke\n" in page
    rows = [
        "| BERT-base, 12 layers of 768 | bf16 | 16 | 300 pairs/s (270–330) | 250 pairs/s (225–275) | "
        "100 pairs/s (90.0–110) | 200 pairs/s (180–220) | 1.50 | 2.00 GB | 4.00 GB |",
        "| BERT-base, 12 layers of 768 | bf16 | 64 | 600 pairs/s (540–660) | – | failed: OutOfMemoryError: a / b | "
        "not available: no `flash_attn` | – | – | – |",
        "| MiniLM, 6 layers of 384 | float32 | 500 sentences/s (450–550) | 400 pairs/s (360–440) | "
        "250 pairs/s (225–275), 128 | – | 2.00 | 1.0e-06, 2.0e-06 |",
        "| MiniLM, 6 layers of 384 | bf16 | 900 pairs/s (810–990) | 800 pairs/s (720–880) | "
        "300 pairs/s (270–330), 32 | not available: no `flash_attn` | 3.00 | –, – |",
        "| `fsdp2.yaml` | trains, mean loss 0.500 | 1.00 GB |",
        "| `zero2.yaml` | not available: no `deepspeed` | – |",
    ]
    for row in rows:
        assert row in page.splitlines(), row
    assert "CosineSimilarityLoss. Not measured: MiniLM in float32; MiniLM in float32, TF32; MiniLM in bf16; " in page
    assert "; BERT-base in float32, TF32; BERT-base in bf16, `--torch_compile`; ModernBERT-base in float32; " in page
    assert gpu_summary(tmp_path) == (
        "On one Some GPU, compared with sentence-transformers: in bf16, training is 1.5 to 1.5 and encoding 3.0 to "
        "3.0 times as fast."
    )
    assert gpu_summary(tmp_path / "empty") == "On a GPU: not measured."
    keep(tmp_path, "training", "training-bert-bf16", {"16 ours": {"error": "OutOfMemoryError: a"}}, batch_sizes=[16])
    assert gpu_summary(tmp_path) == "On a GPU: not measured."
