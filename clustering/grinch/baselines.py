"""What Grinch is compared with (Monath et al., KDD 2019).

`ONLINE` and `ROTATE` are Grinch with parts left out; the other two are agglomerative and give a
binary tree as ``parent``: int32[2n - 1], leaves 0 .. n - 1 as the rows, -1 at the root.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import linkage as scipy_linkage

from clustering.errors import ConfigError
from clustering.features.leaves import Leaves
from clustering.grinch.config import GrinchConfig
from clustering.grinch.hac_kernels import join_most_alike
from clustering.linkage import Linkage

ONLINE = GrinchConfig(rotate=False, graft=False)
"""Each leaf becomes the sibling of its nearest neighbour, and stays there."""

ROTATE = GrinchConfig(graft=False)
"""Online with rotations: roughly the tree of Perch, without its balancing."""


def hac(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.int32]:
    """Batch agglomerative clustering, average linkage over cosine distances: O(n^2).

    vectors: float[n, d], n >= 1, none of them zero.
    """
    n = len(vectors)
    parent = np.full(2 * n - 1, -1, np.int32)
    if n > 1:
        merges = scipy_linkage(vectors, method="average", metric="cosine")
        children = merges[:, :2].astype(np.int64)
        parent[children] = np.arange(n, 2 * n - 1, dtype=np.int32)[:, None]
    return parent


def mini_batch_hac(
    rows: npt.NDArray[np.float32], linkage: Linkage, buffer: int = 500
) -> npt.NDArray[np.int32]:
    """Agglomerative clustering of a stream through a buffer of at most ``buffer`` subtrees.

    Half a buffer of new rows is taken in at a time, then the two most alike subtrees in the buffer
    are joined until it is half full again. Nothing that was joined comes apart. With as large a
    buffer as there are rows this is batch agglomerative clustering with the given linkage.

    rows: float32[n, width], n >= 1, in the order of arrival. Takes O(n buffer) linkages.
    """
    if buffer < 2:
        raise ConfigError(f"buffer is {buffer}; joining needs room for at least 2 subtrees")
    n, width = rows.shape
    nothing = Leaves(0).arrays
    aggregates = np.empty((2 * n - 1, width), np.float32)
    aggregates[:n] = rows
    sizes = np.ones(2 * n - 1, np.int32)
    parent = np.full(2 * n - 1, -1, np.int32)
    tops = np.empty(0, np.int64)
    new, taken = n, 0
    while taken < n or len(tops) > 1:
        more = min(n - taken, buffer - len(tops))
        tops = np.concatenate([tops, np.arange(taken, taken + more)])
        taken += more
        keep = min(buffer // 2, len(tops)) if taken < n else 1
        new = join_most_alike(
            aggregates, sizes, parent, tops, keep, new, linkage.kernel, linkage.params, nothing
        )
        tops = tops[:keep].copy()
    return parent
