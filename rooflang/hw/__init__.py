"""Hardware: platforms read from TOML, clusters of any GPU count, routes through them, and meshes laid on them."""

from rooflang.hw.cluster import Cluster, Device
from rooflang.hw.levels import Level, Tier
from rooflang.hw.mesh import Axis, Factor, Mesh, mesh_factorisations
from rooflang.hw.routes import Link, Route
from rooflang.hw.schema import Platform, load_platform, platform_names

__all__ = [
    "Axis",
    "Cluster",
    "Device",
    "Factor",
    "Level",
    "Link",
    "Mesh",
    "Platform",
    "Route",
    "Tier",
    "load_platform",
    "mesh_factorisations",
    "platform_names",
]
