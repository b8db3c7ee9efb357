"""The launch configurations: accelerate knows every key, and each does as its name says."""

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.utils import DistributedType

FOLDER = Path(__file__).resolve().parent.parent / "accelerate_configs"
EXPECTED = {
    "cpu_2_processes": (DistributedType.MULTI_GPU, 2, 1),
    "one_process": (DistributedType.NO, 1, 1),
    "gpu_several": (DistributedType.MULTI_GPU, 4, 1),
    "gpu_several_nodes": (DistributedType.MULTI_GPU, 8, 2),
    "fsdp2": (DistributedType.FSDP, 4, 1),
    "deepspeed_zero2": (DistributedType.DEEPSPEED, 4, 1),
    "deepspeed_zero3": (DistributedType.DEEPSPEED, 4, 1),
}


def test_every_file_is_expected() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_accelerate_reads_it(name: str) -> None:
    config = load_config_from_file(str(FOLDER / f"{name}.yaml"))
    assert (config.distributed_type, config.num_processes, config.num_machines) == EXPECTED[name]
    assert config.use_cpu is name.startswith("cpu")
    shards = name.startswith(("fsdp", "deepspeed"))
    assert config.mixed_precision == ("bf16" if shards else "no")  # elsewhere, `--precision` decides
    stage = config.deepspeed_config.get("zero_stage")
    assert stage == (int(name[-1]) if name.startswith("deepspeed") else None)
    assert config.fsdp_config.get("fsdp_version") == (2 if name == "fsdp2" else None)
