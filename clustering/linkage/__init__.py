"""Linkages: how alike two nodes of the tree are.

A linkage is one numba kernel with a fixed signature plus its parameters, so that the tree kernels
compile once for all linkages and a new linkage is one new module here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from clustering.features.leaves import LEAVES_TYPE

NODES_TYPE = types.Tuple(  # type: ignore[no-untyped-call]
    (types.float32[:, ::1], types.int32[:, ::1], types.int32[::1])
)
LINKAGE_SIGNATURE = types.float64(
    NODES_TYPE, LEAVES_TYPE, types.int64, types.int64, types.float64[::1]
)
LINKAGE_TYPE = types.FunctionType(LINKAGE_SIGNATURE)


@dataclass(frozen=True)
class Linkage:
    """A similarity of two nodes; higher is more alike.

    kernel: ``kernel(nodes, leaves, a, b, params) -> float64`` compiled with LINKAGE_SIGNATURE.
        nodes: (aggregates, samples, sizes). aggregates: float32[n_nodes, width], row v is the sum
            over v's leaves of their rows. samples: int32[n_nodes, n_samples], some of v's leaves
            (all, while they fit), -1 behind them. sizes: int32[n_nodes], number of v's leaves.
        leaves: what is known of each leaf besides its row (`features.leaves`).
        a, b: node ids.
    params: float64[n_params], what the kernel needs to know besides the two nodes.
    n_samples: how many leaves of each node the kernel wants in ``samples``.
    """

    name: str
    kernel: Callable[..., Any]
    params: npt.NDArray[np.float64]
    n_samples: int = 0


__all__ = ["LINKAGE_SIGNATURE", "LINKAGE_TYPE", "NODES_TYPE", "Linkage"]
