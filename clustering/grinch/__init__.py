"""The online cluster tree: Grinch (Monath et al., KDD 2019), with deletes, a floor and entities."""

from clustering.grinch.config import GrinchConfig
from clustering.grinch.tree import NONE, GrinchTree, NeighbourSearch, TreeError

__all__ = ["NONE", "GrinchConfig", "GrinchTree", "NeighbourSearch", "TreeError"]
