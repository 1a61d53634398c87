"""Which resource names only say more of a request for GPUs, so that no node needs to offer them?

kube-scheduler has to be told to ignore the same names: scheduler-config lists them. Whether such a pod fits is for
`decide.devices` to say, which knows each card.
"""

from typing import Final

HAMI_MEMORY: Final = "nvidia.com/gpumem"
HAMI_MEMORY_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
HAMI_CORES: Final = "nvidia.com/gpucores"
HAMI_PRIORITY: Final = "nvidia.com/priority"

VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"

KOORDINATOR_SHARED: Final = "koordinator.sh/gpu.shared"

QUALIFIERS: Final = frozenset(
    {
        HAMI_MEMORY,
        HAMI_MEMORY_PERCENTAGE,
        HAMI_CORES,
        HAMI_PRIORITY,
        VGPU_MEMORY,  # nodes offer it and the cores, but for those in MIG mode
        VGPU_CORES,
        VGPU_MEMORY_PERCENTAGE,
        KOORDINATOR_SHARED,  # offered only behind a feature gate of Koordinator's manager
    }
)
