"""ONNX graphs of a model: written, checked against torch, quantised and run. Needs the extra `onnx`."""

import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sts_regression.modeling_sts_regression import STSRegressionModel

ONNX_PACKAGES = ("onnx", "onnxruntime", "onnxscript")
ONNX_TOLERANCE = 1e-4  # largest difference from torch, in the unit of the output
LARGEST_FILE = 1 << 30  # bytes; larger weights go into a file beside the graph, which must stay below 2 GiB


def check_onnx_is_installed() -> None:
    """Raises `ValueError` if the extra `onnx` is not installed."""
    missing = [name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f'the export needs {", ".join(missing)}. Install the extra with `pip install ".[onnx]"`.')


class EncoderGraph(nn.Module):
    """
    Maps sentences, tensors of shape (batch, length), to `sentence_embedding` of shape (batch, hidden).

    Embeddings are scaled to length 1 if `normalize_embeddings` of the configuration is true.
    """

    def __init__(self, model: STSRegressionModel) -> None:
        super().__init__()
        self.model = model
        self.output_names = ["sentence_embedding"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The outputs, in the order of their names."""
        embeddings = self.model.get_text_features(input_ids, attention_mask, token_type_ids)
        return (F.normalize(embeddings, dim=-1) if self.model.config.normalize_embeddings else embeddings,)


class ScorerGraph(nn.Module):
    """
    Maps pairs to `score`, on the label scale, and, for a bi-encoder, `cosine`, both of shape (batch,).

    The inputs are those of the model: shape (batch, 2, length), or (batch, length) for a cross-encoder, which takes
    the pair as one sequence.
    """

    def __init__(self, model: STSRegressionModel) -> None:
        super().__init__()
        self.model = model
        self.output_names = ["score"] if model.config.encoder_type == "cross-encoder" else ["score", "cosine"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The outputs, in the order of their names."""
        output = self.model(input_ids, attention_mask, token_type_ids)
        if output.embeddings is None:
            return (output.scores,)
        return output.scores, F.cosine_similarity(output.embeddings[:, 0], output.embeddings[:, 1], dim=-1)


def write_graph(graph: EncoderGraph | ScorerGraph, inputs: Mapping[str, Tensor], path: Path) -> None:
    """
    Writes a graph with variable batch size and length.

    Args:
        graph: the graph, on the CPU.
        inputs: an example batch of at least three items, which determines the dimensions.
        path: the file to write.
    """
    dimensions = {0: "batch", inputs["input_ids"].dim() - 1: "length"}
    size = sum(parameter.numel() * parameter.element_size() for parameter in graph.parameters())
    with _quiet():
        torch.onnx.export(
            graph.eval(),
            kwargs=dict(inputs),
            f=path,
            input_names=list(inputs),
            output_names=graph.output_names,
            dynamic_shapes=dict.fromkeys(inputs, dimensions),
            external_data=size > LARGEST_FILE,
            dynamo=True,
            verbose=False,
        )


def quantize_graph(path: Path, target: Path) -> None:
    """Writes a graph with weights as 8-bit integers. Activations are quantised at run time (dynamic quantisation)."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(path)
    del graph.graph.value_info[:]  # the quantiser transposes weights, and fails on their old shapes
    with _quiet():
        # Without `reduce_range`, sums overflow on x86 processors that lack VNNI instructions.
        quantize_dynamic(graph, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


class GraphSession:
    """A graph in ONNX Runtime on the CPU, called with tensors like the original module."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        self.session: Any = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.input_names = {node.name for node in self.session.get_inputs()}
        self.output_names = [node.name for node in self.session.get_outputs()]

    def __call__(self, **inputs: Tensor) -> dict[str, np.ndarray]:
        """Outputs by name."""
        feed = {name: tensor.numpy() for name, tensor in inputs.items() if name in self.input_names}
        return dict(zip(self.output_names, self.session.run(None, feed), strict=True))


@torch.no_grad()
def largest_difference(graph: EncoderGraph | ScorerGraph, path: Path, batches: list[dict[str, Tensor]]) -> float:
    """
    The largest difference between the written graph and torch on the given batches.

    Raises:
        ValueError: if it is larger than 1e-4.
    """
    session = GraphSession(path)
    largest = 0.0
    for batch in batches:
        written = session(**batch)
        for name, expected in zip(graph.output_names, graph(**batch), strict=True):
            largest = max(largest, float(np.abs(written[name] - expected.numpy()).max()))
    if not largest <= ONNX_TOLERANCE:
        raise ValueError(
            f"{path.name}: its output differs from torch by {largest:.1e}, more than {ONNX_TOLERANCE:.0e}. These "
            "versions of torch and onnxruntime do not convert this encoder correctly. Try others."
        )
    return largest


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of exporter and quantiser on which users cannot act."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
