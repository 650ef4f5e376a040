"""What the chain changes: each link uses what the one before brought, at the same place."""

from __future__ import annotations

from bot.sandbox.sample.history import append, replace, write

STAGE = (
    replace(
        "tilec/passes/pipeline.py",
        """
from __future__ import annotations

DEFAULT_NUM_STAGES = 2
""",
        '''
from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_NUM_STAGES = 2


@dataclass
class PipelineStage:
    """The loads that are in flight together."""

    index: int
    loads: list = field(default_factory=list)
''',
    ),
    replace(
        "tilec/passes/pipeline.py",
        '''
def pipeline(fn, num_stages=DEFAULT_NUM_STAGES):
    """Give each load its stage; returns how many."""
    loads = loads_of(fn)
    for index, op in enumerate(loads):
        op.attrs["stage"] = index % num_stages
    return len(loads)
''',
        '''
def collect_stages(fn, num_stages):
    """The loads of a function by stage, round robin."""
    stages = [PipelineStage(index) for index in range(num_stages)]
    for index, op in enumerate(loads_of(fn)):
        stages[index % num_stages].loads.append(op)
    return stages


def pipeline(fn, num_stages=DEFAULT_NUM_STAGES):
    """Give each load its stage; returns how many."""
    stages = collect_stages(fn, num_stages)
    for stage in stages:
        for op in stage.loads:
            op.attrs["stage"] = stage.index
    return sum(len(stage.loads) for stage in stages)
''',
    ),
)

BYTES = (
    replace(
        "tilec/passes/pipeline.py",
        """
    index: int
    loads: list = field(default_factory=list)
""",
        '''
    index: int
    loads: list = field(default_factory=list)

    @property
    def nbytes(self):
        """Shared memory that one copy of the stage takes."""
        return sum(op.result.type.nbytes for op in self.loads)
''',
    ),
    replace(
        "tilec/passes/pipeline.py",
        """
        stages[index % num_stages].loads.append(op)
    return stages
""",
        '''
        stages[index % num_stages].loads.append(op)
    return stages


def buffer_bytes(stages):
    """Shared memory that all stages take together."""
    return sum(stage.nbytes for stage in stages)
''',
    ),
    write(
        "tests/unit/test_pipeline.py",
        '''
"""Pipelining in detail."""

from tilec.frontend.trace import kernel, load
from tilec.passes.pipeline import buffer_bytes, collect_stages


def three_loads():
    @kernel(x="tensor<64xf32>", y="tensor<64xf32>", z="tensor<64xf32>")
    def fn(x, y, z):
        return load(x) + load(y) + load(z)

    return fn


def test_bytes_of_stages():
    stages = collect_stages(three_loads(), 2)
    assert [stage.nbytes for stage in stages] == [512, 256]
    assert buffer_bytes(stages) == 768
''',
    ),
)

FIT = (
    replace(
        "tilec/passes/pipeline.py",
        '''
    """Shared memory that all stages take together."""
    return sum(stage.nbytes for stage in stages)
''',
        '''
    """Shared memory that all stages take together."""
    return sum(stage.nbytes for stage in stages)


def fit_stages(fn, num_stages, limit):
    """As many stages as fit into shared memory, one at least."""
    while num_stages > 1 and buffer_bytes(collect_stages(fn, num_stages)) * num_stages > limit:
        num_stages -= 1
    return collect_stages(fn, num_stages)
''',
    ),
    replace(
        "tilec/passes/pipeline.py",
        '''
def pipeline(fn, num_stages=DEFAULT_NUM_STAGES):
    """Give each load its stage; returns how many."""
    stages = collect_stages(fn, num_stages)
''',
        '''
def pipeline(fn, num_stages=DEFAULT_NUM_STAGES, limit=65536):
    """Give each load its stage; returns how many."""
    stages = fit_stages(fn, num_stages, limit)
''',
    ),
    append(
        "tests/unit/test_pipeline.py",
        """

def test_fewer_stages_where_memory_is_short():
    assert len(fit_stages(three_loads(), 3, 2304)) == 3
    assert len(fit_stages(three_loads(), 3, 800)) == 1
""",
    ),
    replace(
        "tests/unit/test_pipeline.py",
        "import buffer_bytes, collect_stages",
        "import buffer_bytes, collect_stages, fit_stages",
    ),
)

PREFETCH = (
    replace(
        "tilec/passes/pipeline.py",
        """
    stages = fit_stages(fn, num_stages, limit)
    for stage in stages:
        for op in stage.loads:
            op.attrs["stage"] = stage.index
""",
        """
    stages = fit_stages(fn, num_stages, limit)
    for stage in stages:
        for op in stage.loads:
            op.attrs["stage"] = stage.index
            op.attrs["prefetch"] = prefetch_distance(stage, stages)
""",
    ),
    replace(
        "tilec/passes/pipeline.py",
        """
def pipeline(fn, num_stages=DEFAULT_NUM_STAGES, limit=65536):
""",
        '''
def prefetch_distance(stage, stages):
    """How many iterations ahead a stage's loads are issued."""
    return len(stages) - 1 - stage.index


def pipeline(fn, num_stages=DEFAULT_NUM_STAGES, limit=65536):
''',
    ),
)

EPILOGUE = (
    replace(
        "tilec/passes/pipeline.py",
        '''
def prefetch_distance(stage, stages):
    """How many iterations ahead a stage's loads are issued."""
    return len(stages) - 1 - stage.index
''',
        '''
def prefetch_distance(stage, stages):
    """How many iterations ahead a stage's loads are issued."""
    return len(stages) - 1 - stage.index


def epilogue_iterations(stages):
    """Iterations that run after the last load, peeled off the loop."""
    return max(prefetch_distance(stage, stages) for stage in stages)
''',
    ),
    append(
        "tests/unit/test_pipeline.py",
        """

def test_epilogue():
    assert epilogue_iterations(collect_stages(three_loads(), 3)) == 2
""",
    ),
    replace(
        "tests/unit/test_pipeline.py",
        "import buffer_bytes, collect_stages, fit_stages",
        "import buffer_bytes, collect_stages, epilogue_iterations, fit_stages",
    ),
)
