"""Programs compiled as users' are, for tests in which single bits count.

All others are compiled in haste (tests/conftest.py), which leaves out what may move a
last bit: a product and a sum are rounded once here, and twice there.
"""

from functools import partial

import jax

__all__ = ["optimised_jit"]

optimised_jit = partial(
    jax.jit,
    compiler_options={
        "xla_backend_optimization_level": 3,
        "xla_llvm_disable_expensive_passes": False,
        "xla_cpu_use_fusion_emitters": True,
        "xla_cpu_parallel_codegen_split_count": 32,
    },
)
