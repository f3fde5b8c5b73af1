"""Several devices under one name: meshes that tensors are spread over (docs/sharding.md)."""

from ..device.mesh import Mesh

__all__ = ["Mesh"]
