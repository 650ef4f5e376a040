"""A distributed job by torchrun on this machine: a plain command started once for each GPU, results from rank 0."""

from __future__ import annotations

import shutil

from runners.harnesses import HarnessError, Place, Start
from runners.harnesses.command import Command

# what runs where there is no GPU to count: enough to be distributed
_WITHOUT_GPU = 2


class Torchrun(Command):
    """Runs a script with its arguments under `torch.distributed.run`, in the suite's own interpreter."""

    def start(self, place: Place) -> Start:
        """One process for each GPU that the suite may see; any rank that fails ends all."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write the script and its arguments")
        count = "gpu" if shutil.which("nvidia-smi") is not None else str(_WITHOUT_GPU)
        launch = ("python", "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}")
        return Start((*launch, *place.suite.run), {"GRAFT_RESULTS": str(place.results / "results.json")})


HARNESS = Torchrun()
