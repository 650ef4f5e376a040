"""Graft's own Triton kernels with shapes that hurt, checked against float64 and by compiling for GPUs not there.

Nothing here imports torch or triton before `python -m runners.kernels` does: a runner without them can be a runner.
"""
