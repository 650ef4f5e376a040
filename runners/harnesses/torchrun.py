"""A distributed job by torchrun on this machine: a plain command started once for each GPU, results from rank 0."""

from __future__ import annotations

import shutil

from runners.harnesses import HarnessError, Place, Start, canary_place
from runners.harnesses.command import Command, results_of

# rank 0 ends well, another fails: the job as a whole has to
_CANARY = """import json, os, sys
if os.environ["RANK"] == "0":
    with open(os.environ["GRAFT_RESULTS"], "w") as file:
        json.dump({"tests": [{"id": "graft::canary", "outcome": "failed"}]}, file)
sys.exit(int(os.environ["RANK"] == "1"))
"""
# what runs where there is no GPU to count: enough to be distributed
_WITHOUT_GPU = 2


class Torchrun(Command):
    """Runs a script with its arguments under `torch.distributed.run`, in the suite's own interpreter."""

    def start(self, place: Place) -> Start:
        """One process for each GPU that the suite may see; any rank that fails ends all."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write the script and its arguments")
        count = "gpu" if shutil.which("nvidia-smi") is not None else str(_WITHOUT_GPU)
        there = canary_place(place)
        there.results.mkdir(parents=True, exist_ok=True)
        script = there.results / "canary.py"
        script.write_text(_CANARY)
        canary = Start((*_launch(str(_WITHOUT_GPU)), str(script)), results_of(there))
        return Start((*_launch(count), *place.suite.run), results_of(place), canary)


HARNESS = Torchrun()


def _launch(count: str) -> tuple[str, ...]:
    return ("python", "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}")
