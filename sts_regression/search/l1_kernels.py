"""Signed weighted L1 distances between two sets of vectors, which a linear head needs besides matrix products.

With the extra `search` (numba), a compiled kernel computes them on the CPU, some twenty times as fast as
`torch.cdist`. Without it, and on a GPU, `torch.cdist` computes them.
"""

import threading
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

try:
    import numba
except ImportError:  # also raised by a numba that does not know the installed NumPy
    numba = None

COLUMNS_AT_ONCE = 1024  # for `torch.cdist`

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]

# numba's fallback threading layer ends the process when two threads enter it at once.
_KERNEL_LOCK = threading.Lock()


def weighted_l1(u: Tensor, v: Tensor, weights: Tensor) -> Tensor:
    """
    Σ_k w_k |u_ik − v_jk| for every pair of rows. The weights may be negative, and so may the result.

    Args:
        u (`Tensor` of shape `(rows, hidden)`): float32 or float64, finite.
        v (`Tensor` of shape `(columns, hidden)`): same type and device as `u`.
        weights (`Tensor` of shape `(hidden,)`): same type and device as `u`.

    Returns:
        `Tensor` of shape `(rows, columns)`.
    """
    if numba is None or u.device.type != "cpu":
        return weighted_l1_by_cdist(u, v, weights)
    distances = torch.empty(len(u), len(v), dtype=u.dtype)
    if distances.numel():
        rows, columns, factors = (tensor.detach().contiguous().numpy() for tensor in (u, v, weights))
        with _KERNEL_LOCK:
            num_threads = torch.get_num_threads()
            numba.set_num_threads(min(num_threads, numba.config.NUMBA_NUM_THREADS))
            _compiled_kernel()(rows, columns, factors, distances.numpy())
            torch.set_num_threads(num_threads)  # numba sets OpenMP's number, which may be torch's too
    return distances


def weighted_l1_by_cdist(u: Tensor, v: Tensor, weights: Tensor) -> Tensor:
    """[`weighted_l1`] with two calls of `torch.cdist`, for the positive and for the negative weights."""
    distances = u.new_zeros(len(u), len(v))
    for sign, mask in ((1, weights >= 0), (-1, weights < 0)):
        scales = weights[mask].abs()
        rows = u[:, mask] * scales
        # In parts, since `v` may be a whole corpus.
        for columns, part in zip(v.split(COLUMNS_AT_ONCE), distances.split(COLUMNS_AT_ONCE, dim=1), strict=True):
            part.add_(torch.cdist(rows, columns[:, mask] * scales, p=1.0), alpha=sign)
    return distances


@cache
def _compiled_kernel() -> Kernel:
    # Sums must be reordered to be vectorised; infinities and NaN keep their meaning.
    return numba.njit(parallel=True, cache=True, fastmath={"reassoc", "contract", "nsz"})(_l1_kernel)


def _l1_kernel(u: np.ndarray, v: np.ndarray, weights: np.ndarray, distances: np.ndarray) -> None:
    """
    Fills `distances` in blocks of 2 × 4 pairs: six loads for eight sums, all of them in registers.

    It computes |a - b| directly: a + b - 2 min(a, b) would need fewer operations, but suffers from cancellation.
    """
    rows, hidden = u.shape
    columns = v.shape[0]
    zero = u.dtype.type(0)
    for stripe in numba.prange((rows + 31) // 32):  # 32 rows of u stay in the cache while v passes by
        for j0 in range(0, columns, 4):
            # At the edges, the last row stands in for missing rows: the same number is written again.
            j1, j2, j3 = min(j0 + 1, columns - 1), min(j0 + 2, columns - 1), min(j0 + 3, columns - 1)
            for i0 in range(stripe * 32, min(rows, stripe * 32 + 32), 2):
                i1 = min(i0 + 1, rows - 1)
                s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = zero
                for k in range(hidden):
                    weight, a0, a1 = weights[k], u[i0, k], u[i1, k]
                    b0, b1, b2, b3 = v[j0, k], v[j1, k], v[j2, k], v[j3, k]
                    s00 += weight * abs(a0 - b0)
                    s01 += weight * abs(a0 - b1)
                    s02 += weight * abs(a0 - b2)
                    s03 += weight * abs(a0 - b3)
                    s10 += weight * abs(a1 - b0)
                    s11 += weight * abs(a1 - b1)
                    s12 += weight * abs(a1 - b2)
                    s13 += weight * abs(a1 - b3)
                distances[i0, j0], distances[i0, j1], distances[i0, j2], distances[i0, j3] = s00, s01, s02, s03
                distances[i1, j0], distances[i1, j1], distances[i1, j2], distances[i1, j3] = s10, s11, s12, s13
