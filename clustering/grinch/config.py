"""Settings of the cluster tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from clustering.errors import ConfigError
from clustering.grinch.grinch_kernels import RESTRUCT_CODE, RESTRUCT_NONE, RESTRUCT_TEXT
from clustering.grinch.tree_kernels import Rules

RESTRUCT = {"none": RESTRUCT_NONE, "text": RESTRUCT_TEXT, "code": RESTRUCT_CODE}


@dataclass(frozen=True)
class GrinchConfig:
    """How the tree is kept. The defaults are what `eval.ablation` shows to be worth having.

    rotate: rotate after an insert; off gives the paper's "Online" baseline.
    graft: graft after an insert; off gives the paper's "Rotate" baseline.
    restruct: what to mend after a graft: "text" where the grafted subtree was cut, as the paper
        says; "code" beside the place it came to, as its authors' program does. The latter gives
        purer trees, which are less deep, for less work.
    cap: subtrees of more leaves are not rotated or grafted any more; 0 = no cap. (The paper
        speaks of height; its authors' programs count leaves.)
    single_elimination: two nodes that both refuse each other end an insert's grafts. Off, because
        it saves a fifth of the time and costs more purity than any other shortcut.
    single_search: grafts choose among the neighbours of the new leaf; otherwise each graft makes
        a search of its own, which needs ``neighbours``.
    neighbours: how many neighbours a search asks for.
    floor: subtrees whose linkage is lower are not joined; the tree is then a forest.
    patience: an insert looks at no more candidates after so many in a row below the floor; 0 = it
        looks at all.
    threshold: a node is coherent when every linkage at or below it is at least this.
    graft_budget: most grafts made for one insert; None = 2 log2(leaves) + 32.
    """

    rotate: bool = True
    graft: bool = True
    restruct: Literal["none", "text", "code"] = "code"
    cap: int = 100
    single_elimination: bool = False
    single_search: bool = True
    neighbours: int = 25
    floor: float = -math.inf
    patience: int = 0
    threshold: float = math.inf
    graft_budget: int | None = None

    def __post_init__(self) -> None:
        if self.restruct not in RESTRUCT:
            raise ConfigError(f"restruct is {self.restruct!r}; use one of {', '.join(RESTRUCT)}")
        if self.cap < 0:
            raise ConfigError(f"cap is {self.cap}; use 0 for none or a number of leaves")
        if self.patience < 0:
            raise ConfigError(f"patience is {self.patience}; use 0 for no end or a number")
        if self.neighbours < 1:
            raise ConfigError(f"neighbours is {self.neighbours}; use at least 1")
        if math.isnan(self.floor) or math.isnan(self.threshold):
            raise ConfigError("floor and threshold must be numbers, not nan")
        if self.graft_budget is not None and self.graft_budget < 0:
            raise ConfigError(f"graft_budget is {self.graft_budget}; use None or at least 0")

    def rules(self) -> Rules:
        """The settings as the kernels read them."""
        return Rules(
            floor=float(self.floor),
            threshold=float(self.threshold),
            patience=self.patience,
            cap=self.cap,
            rotate=self.rotate,
            restruct=RESTRUCT[self.restruct],
            single_elimination=self.single_elimination,
        )
