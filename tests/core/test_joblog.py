"""What is the machine's trouble and what is the code's (C36); a compiler's error is never excused."""

from __future__ import annotations

import pytest

from bot.core.joblog import Cause, evidence, infra_text
from bot.core.signature import signature

MACHINE = [
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "error: RPC failed; curl 92 HTTP/2 stream 0 was not closed cleanly: CANCEL (err 8)",
    "fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com",
    "OSError: [Errno 28] No space left on device",
    "curl: (56) Recv failure: Connection reset by peer",
]
CODE = [
    "error: could not open 'llvm-install/lib/libfoo.a'",
    "ld: could not open llvm-install/lib/libfoo.a: No such file or directory",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 270336, Hardware limit: 232448",
    "a.mlir:3:5: error: 'tt.dot' op expects the same element type\nconnection reset by peer",
    "E   AssertionError: connection reset by peer",
    "E       assert 1 == 2\n---- Captured log ----\nconnection reset by peer",
    "Mismatched elements: 3 / 4\nno space left on device",
]


@pytest.mark.parametrize("text", MACHINE)
def test_c36_the_machine(text: str) -> None:
    assert infra_text(text)
    assert signature(text, "t.py::test_a").cls == "infra"
    shown = evidence(f"building\n{text}\nmake: *** error\n".encode())
    assert shown is not None and shown.cause is Cause.INFRA


@pytest.mark.parametrize("code", ["ECONNRESET", "ENOTFOUND"])
def test_the_actions_runner_names_what_its_network_did(code: str) -> None:
    shown = evidence(f"##[error]Failed to CreateArtifact: Unable to make request: {code}\n".encode())
    assert shown is not None and shown.cause is Cause.INFRA


@pytest.mark.parametrize("text", CODE)
def test_c36_the_code(text: str) -> None:
    assert not infra_text(text)
