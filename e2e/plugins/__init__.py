"""Stand-ins for the GPU device plugins that the extender tells of its choice, and for how kubelets ask them.

There is no GPU and no plugin here: what a real one reads of pods and nodes is read, and what it writes is written, and
what would be the container's environment is returned. They go wrong where the real ones do. None shares code with the
extender, so that it is judged by another reading of the formats.
"""
