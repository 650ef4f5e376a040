"""Texts that were written apart from the code, of tools and in words that its tables do not list: what holds there.

Each of the first four sets was written before the change to the code that it led to. What each gave at first contact
by class accuracy and infra recall: first 0.78, 0.71; second (measured at the code that the first led to) 0.65, 0.54;
third 0.68, 0.50; fourth 0.70, 0.67. The fifth set says in words of its own what rules were made from real failures
that are kept outside: sixteen rounds of those, each of texts not looked at before, gave 0.47 to 0.64 in the first five
at first contact, 0.74 to 0.88 in the next eight, 0.61 and 0.71 where tools were far from any met (Bazel, Ray, MPI) and
0.91 where they were those of GPU projects; infra recall 0.33 to 0.67, then 0.71 to 0.89, 0.61, 0.63 and 0.92. That is
what to expect of a tool that was never met: the figures of the sets are those of texts that have been. The sixth does
so for two rounds that others collected and labelled and three more, again kept outside: 135 texts of code and tests
gave 0.87 at first contact, 155 of machines, harnesses and what does not decide 0.81 (0.83 with what the first had led
to), 53 picked for being unlike all others 0.70, then 37 and 31 as they came 0.78 and 0.84, 107 that others had kept
back 0.83 with 0.59 of the infrastructure; and it holds programs' words that are like a harness's. No text here is one
that the model of words was learned from (signature-words.json). The floors stand a little below the figures of now.
"""

from __future__ import annotations

import json
from collections import Counter
from math import comb
from pathlib import Path
from typing import Any

import pytest

from bot.core.signature import Signature, signature
from bot.core.signature.frameworks import framework
from bot.core.signature.speakers import speaker
from bot.core.signature.trouble import trouble
from bot.core.signature.wording import guess

DATA = Path(__file__).parents[1] / "data"
CASES: list[dict[str, Any]] = json.loads((DATA / "signature-apart.json").read_text())["cases"]
LEARNED: list[dict[str, str]] = json.loads((DATA / "signature-words.json").read_text())


def signed(name: str) -> list[tuple[dict[str, Any], Signature]]:
    """The cases of a set with their signatures."""
    return [(case, signature(case["text"], case["test"])) for case in CASES if case["set"] == name]


def pairs(counts: Counter[Any]) -> int:
    return sum(comb(count, 2) for count in counts.values())


@pytest.mark.parametrize(
    ("name", "right", "infra", "precision", "recall"),
    [
        ("first", 0.98, 0.98, 0.92, 0.91),
        ("second", 0.97, 0.96, 0.88, 0.84),
        ("third", 0.88, 0.81, 0.98, 0.90),
        ("fourth", 0.98, 0.98, 0.98, 0.92),
        ("fifth", 0.98, 0.98, 0.98, 0.98),
        ("sixth", 0.98, 0.98, 0.98, 0.98),
    ],
)
def test_texts_that_no_table_lists(name: str, right: float, infra: float, precision: float, recall: float) -> None:
    cases = signed(name)
    wrong = [case["id"] for case, one in cases if case["class"] in ("code", "harness") and one.cls == "infra"]
    assert wrong == [], "what code did is never excused"
    assert sum(case["class"] == one.cls for case, one in cases) / len(cases) >= right
    machines = [one.cls for case, one in cases if case["class"] == "infra"]
    assert machines.count("infra") / len(machines) >= infra
    together = pairs(Counter((case["cause"], one.key) for case, one in cases))
    assert together / pairs(Counter(one.key for _, one in cases)) >= precision
    assert together / pairs(Counter(case["cause"] for case, _ in cases)) >= recall


HEADS = (
    'Traceback (most recent call last):\n  File "/opt/venv/bin/pytest", line 8, in <module>\n    sys.exit(main())\n',
    "##[group]Run tests (shard 7/8)\n##[endgroup]\n",
    "W1129 10:25:33.809202 86924 torch/_logging/structured.py:28] cache miss\n",
    "[gw14] linux -- Python 3.12.9 /opt/venv/bin/python3\n",
)
TAILS = (
    "\nPost job cleanup.\n##[error]Process completed with exit code 134.",
    "\nError: Process completed with exit code 2.",
    "\n=========== 1 failed, 247 passed, 1 skipped in 162.80s ===========",
)


@pytest.mark.parametrize("part", range(4))
def test_what_a_run_says_before_and_after_changes_nothing(part: int) -> None:
    moved = []
    for case in CASES[part::24]:
        one = signature(case["text"], case["test"])
        if one.title in ("no text", "Test has no 'RUN:' line", "t/a.py::t10"):
            continue  # nothing said it but the run
        for head, tail in ((HEADS[part], ""), ("", TAILS[part % 3]), (HEADS[part], TAILS[(part + 1) % 3])):
            if signature(head + case["text"] + tail, case["test"]) != one:
                moved.append(case["id"])
    assert moved == []


@pytest.mark.parametrize("part", range(3))
def test_how_a_log_was_carried_changes_nothing(part: int) -> None:
    carried = [
        lambda line: f"E   {line}",  # by pytest, with what it says of where
        lambda line: f"\x1b_bk;t=1690000000{len(line)}\x07{line}",  # by Buildkite
        lambda line: f"> {line}",  # in a comment
    ][part]
    moved = [
        case["id"]
        for case in CASES[part::24]
        if signature("\n".join(map(carried, case["text"].split("\n"))), case["test"])
        != signature(case["text"], case["test"])
    ]
    assert moved == []


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("AssertionError: the node was evicted", "AssertionError"),  # code speaks of it
        ("ValueError: Could not resolve host pattern '*'", "ValueError"),
        ("assert response.status == 503", None),
        ("Failed: DID NOT RAISE OSError  # [Errno 28]", None),
        ("error: register allocation failed", None),  # a compiler's words
        ("lowering of node failed", None),
        ("the backend failed to select an instruction", None),
        ("loop is unreachable from node entry", None),
        ("instruction scheduler failed", None),
        ("OSError: [Errno 2] No such file or directory: 'a'", "OSError"),
        ("requests.ConnectionError: localhost: [Errno 111] Connection refused", "ConnectionError"),
        ("KeyError: 'ECONNRESET'", "KeyError"),
        ("RuntimeError: the cuda driver stub failed", "RuntimeError"),
    ],
)
def test_what_is_not_the_machines(text: str, exception: str | None) -> None:
    found = trouble(text, exception=exception)
    assert found is None or found.cls != "infra", found


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("Node gpu-7 status is now: NodeNotReady", None),
        ("kubelet: the kubelet on n7 stopped", None),
        ("OSError: [Errno 116] Stale file handle: '/mnt/x'", "OSError"),
        ("rpc error: code = Unavailable desc = transport is closing", None),
        ("INFO: task python:123 blocked for more than 120 seconds", None),
        ("An error occurred (Throttling) when calling the DescribeInstances operation", None),
        ("the remote server replied 503", None),
        ("RuntimeError: the NVIDIA driver on this node is not responding", "RuntimeError"),
    ],
)
def test_what_is_the_machines(text: str, exception: str | None) -> None:
    found = trouble(text, exception=exception)
    assert found is not None and found.cls == "infra"


def test_a_text_that_tells_nothing_stands_for_itself_and_not_for_all_such() -> None:
    one, other = "the frobnicator said so at 10:03", "the widget turned blue"
    assert signature(one).key == signature("the frobnicator said so at 11:44").key != signature(other).key
    assert signature("", None).key == signature("  \n", None).key


@pytest.mark.parametrize(
    ("line", "cls", "kind"),
    [
        ("kubelet: eviction manager is low on memory", "infra", "machinery"),
        ("NVRM: the GPU stopped answering, Xid 79", "infra", "machinery"),
        ("[  912.104417] XFS (sdc1): metadata I/O error", "infra", "machinery"),
        ("srun: error: Unable to reach the node", "infra", "machinery"),
        ("srun: unrecognized option '--gpus-each=2'", "harness", "machinery"),  # how it was called
        ("docker: invalid reference format", "harness", "machinery"),
        ("srun: error: n4: task 0: Exited with exit code 2", "unknown", "exit"),  # how what it ran has ended
        ("kernel: python[41]: segfault at 0 ip 7f sp 7f error 4", "code", "segfault"),
        ("jq: error: null has no keys", "harness", "shell"),
        ("n4:812:900 [3] NCCL WARN Call to connect failed: timed out", "infra", "machinery"),
        ("n4:812:900 [3] NCCL WARN AllGather : wanted a root below 4", "unknown", "machinery"),
    ],
)
def test_who_speaks(line: str, cls: str, kind: str) -> None:
    found = speaker(line)
    assert found is not None and (found.cls, found.kind) == (cls, kind)


@pytest.mark.parametrize(
    "line",
    [
        "kubelet: node is ready",  # all is well
        "the kernel: error in tile 4",  # not at the start
        "kernel_packs_tiles: wrong shape",
        "nvidia is not supported by this op",
        "dockerize: cannot lower",
        "RuntimeError: srun: error",
    ],
)
def test_nobody_speaks(line: str) -> None:
    assert speaker(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "--- FAIL: TestSplitKeepsOrder (0.02s)",
        "not ok 3 - keeps strides",
        "test tiles::odd ... FAILED",
        "[  FAILED  ] Pack.RoundsUp (3 ms)",
        "  ● layout › keeps strides",
        "==3141== Invalid read of size 8",
        "========= Invalid __global__ write of size 4 bytes",
        "wanted 8 tiles but got 4",
        "Falsifying example: test_pack(parts=0)",
    ],
)
def test_what_other_frameworks_say(line: str) -> None:
    found = framework(line, line.lower())
    assert found is not None and found.cls == "code"


def test_words_of_machines_tell_machines() -> None:
    said = "the host went offline while the agent waited, the fleet replaced the machine"
    assert guess([said]) == "infra"


@pytest.mark.parametrize(
    "more", ["tensor", "the op", "lowering", "expected 4", "a kernel", "%arg", "std::vector", "import of a", "SIGSEGV"]
)
def test_a_word_of_programs_forbids_to_say_infra(more: str) -> None:
    said = "the host went offline while the agent waited, the fleet replaced the machine"
    assert guess([f"{said}: {more}"]) != "infra"


@pytest.mark.parametrize("said", ["", "zephyr wobbled", "the frobnicator said so", "offline", "x" * 9999])
def test_words_that_were_never_met_tell_nothing(said: str) -> None:
    assert guess([said]) == "unknown"


def test_no_text_of_code_that_was_learned_from_is_called_infra() -> None:
    assert [each["text"] for each in LEARNED if each["class"] == "code" and guess([each["text"]]) == "infra"] == []


def test_what_was_learned_from_is_not_what_is_measured() -> None:
    assert {each["text"] for each in LEARNED}.isdisjoint(case["text"] for case in CASES)


@pytest.mark.parametrize(
    "text",
    [
        "error: in region 2: no capacity for op",
        "RuntimeError: kernel launch failed, not enough capacity on host",
        "error: 'gpu.launch' op has insufficient capacity",
        "RuntimeError: instance norm: no capacity left in slot map",
        "ValueError: zone allocator is out of capacity",
        "RuntimeError: out of capacity",
        "error: cannot provision scratch for op",
        "RuntimeError: failed to provision 4 tensor map descriptors",
        "KeyError: 'InsufficientInstanceCapacity'",
        "error: handle locked by another program point",
        "RuntimeError: path of operand is in use by another process group",
        "RuntimeError: cannot open cache for op: permission denied",
        "AssertionError: Access to the path '/x/_diag/a' is denied",
        "error: out of memory in register allocator",
        "ld.lld: error: undefined symbol: out_of_memory",
        "a.cpp:4:2: error: link: out of memory space 3",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 60.00 GiB. GPU 0 has a total capacity of 79.25"
        " GiB of which 5.00 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25"
        " GiB of which 1.00 GiB is free. Of the allocated memory 77.00 GiB is allocated by PyTorch",
        "PermissionError: [Errno 13] Permission denied: '/tmp/cache/tile.so'",
        "kernel: failed to compile for sm_90",
        "kernel[0]: wrong result, expected 4",
        "watchdog: test hung after 60s in test_pipeline",
        "E: mismatch in tile 4",
        "nvidia: invalid layout for operand 2",
        "runc: could not unify types of lhs and rhs",
        "flux: cannot lower attention op",
        "nomad: loss is not finite, aborting",
        "remoting: unexpected token in expression",
        "ERROR: lima: bad mask value",
        "E   RuntimeError: cni: number of inputs does not match",
        "E   ValueError: docker: not a valid layout",
        "RuntimeError: node 4 failed to schedule: no host operand",
        "RuntimeError: failed to attach container type to op",
        "E   AssertionError: failed to fetch: EOF",
        "RuntimeError: failed to read block: EOF",
        "ValueError: no machine with 4 warps is registered",
        'KeyError: "no executor for op is registered"',
        "RuntimeError: No runner for backend 'cpu' is registered",
        "error: checksum failed for tile 4: expected 3 got 4",
        "AssertionError: checksum mismatch in output tensor",
        "amdgpu: error: cannot select v_mfma",
        "amdgpu-lower-module-lds: error: too much LDS",
        "nvidia-lower: error: failed to legalize",
        "sd: error: shape mismatch",
        "ib_insert: invalid insertion point",
        "NotImplementedError: nvme offload not supported for this optimizer",
        "RuntimeError: mount of buffer failed because of network layout",
        "RuntimeError: the fabric manager isn't running in mock",
        "error: couldn't start agent pass: host op missing",
        "podman: error: undefined symbol foo",
        "singularity: matrix is singular, cannot invert",
        "RuntimeError: cublas failed due to driver layout mismatch",
        "ValueError: due to the hardware block size the kernel cannot tile",
        "i915: error: unsupported dtype",
        "error: pass 'gpu-kernel-outlining' failed: node offline analysis",
        "LLVM ERROR: out of memory in register allocator: node lost",
        "dkms: error in lowering",
        "EDAC: invalid operand type",
        "thermal: boundary condition failed",
        "goma: error: wrong dtype",
        "rclone: tensor clone failed, strides lost",
        "RuntimeError: [rank0]: node running low on memory pool slots for tensor",
        "kernel: gemm timed out waiting for barrier in autotuner",
        "kernel: memory access beyond buffer bounds",
        "nvidia-gpu backend: error: failed to allocate registers",
        "amdgpu: error: ran out of registers during register allocation in function 'attn'",
        "RuntimeError: driver returned bad cubin for kernel add",
        "RuntimeError: storage size mismatch, network weights not loaded",
        "ValueError: unknown node in network graph: host_3",
        "E   RuntimeError: Pool exhausted: no free slots for KV blocks",
        "RuntimeError: all slots are taken in allocator",
        "Exception: lock of cache entry: another process holds a different key",
        "RuntimeError: maximum retries exhausted in solver",
        "error: retries exhausted while searching schedule",
        "ConvergenceError: retry count exceeded for line search",
        "RuntimeError: server returned 500 because the model produced NaN",
        "RuntimeError: channel closed before the first element was read",
        "RuntimeError: connection between stages is missing an edge",
        "ERROR: socket count of topology must be positive",
        "FATAL: driver.cpp:41: no input files reached the host compiler",
        "error: host code generation failed for device function",
        "error: device code linking failed: unresolved extern",
        "error: memory space mismatch: expected global, got shared",
        "RuntimeError: out of memory pool: workspace too small",
        "error: bank conflict checker: port 3 busy",
        "RuntimeError: clock domain crossing without sync",
        "ERROR: cluster launch failed: cluster size 32 exceeds the limit",
        "RuntimeError: Cluster with 16 CTAs cannot be scheduled",
        "error: instance of agent type lost its constructor",
        "CI assertion: worker pool shrank below 2 workers",
        "SystemExit: machine model 'h100' lacks latency for wgmma",
        "error: proxy fence required before async copy",
        "error: failed to mount pass plugin",
        "RuntimeError: disk cache key collision for kernel _fwd",
        "RuntimeError: quota of registers exceeded",
        "error: instruction fetch failed at pc 0x40",
        "RuntimeError: Timed out while waiting for grid barrier; likely deadlock in persistent kernel",
        "error: image type is not supported on this target",
        "error: volume of the iteration space is unbounded",
        "RuntimeError: HIP kernel launch failed: grid dim 0",
        "node 12 (add): failed to evaluate: dead input",
        "Error: container has no element named 'alpha'",
        "kernel: process group of warps stuck at barrier",
        "xfs: error in fused softmax path",
        "nfs_pack: bad stride",
        "scheduler: no free slot for stage 3, pipeline stuck",
        "error: the scheduler failed to place instruction 14",
        "RuntimeError: host memory not pinned for async memcpy",
        "RuntimeError: device 0 returned wrong sum",
        "RuntimeError: disk offload of weights lost the bias",
        "Error: registry has no entry for op 'gelu'",
        "RuntimeError: registry unavailable for backend 'metal'",
        "error: server stub generation failed",
        "RuntimeError: agent policy network diverged",
        "RuntimeError: driver entry point cuTensorMapEncode not found",
        "RuntimeError: cache miss for kernel config; autotune failed on node worker",
        "ValueError: endpoint of the interval is unavailable",
        "error: gateway block has no successor",
        "RuntimeError: proxy tensor lost its fake mode",
        "RuntimeError: backend worker failed to compile graph",
        "ERROR: backend unavailable: 'triton_ascend'",
        "error: target machine does not support fp8",
        "RuntimeError: Machine code verifier failed: bad machine operand",
        "# Machine code for function foo: bad machine code: Using an undefined physical register",
        "Instance check failed: expected Module, got Pod",
        "RuntimeError: pod of experts failed to route tokens",
        "RuntimeError: container registry lookup of layer 'mlp' failed",
        "error: volume rendering kernel timed out",
        "RuntimeError: CUDA graph launch timed out on stream 7",
        "RuntimeError: interconnect topology must be a ring",
        "ERROR: power of two required",
        "ERROR: clock() mismatch between runs",
        "RuntimeError: temperature must be positive",
        "error: fan-in node unreachable from entry",
        "RuntimeError: daemon thread died with exception in callback",
        "RuntimeError: lost connection between layers 3 and 4",
        "docker_test.cc:41: error: no member named 'pull'",
        'slurm_launcher.py:12: error: Name "srun" is not defined',
        "error: mirror of the matrix failed to converge",
        "filesystem.cpp:88: error: no matching function for call to 'mount'",
        "RuntimeError: network error 0.4 exceeds tolerance 0.1",
        "error: network failure probability must sum to 1",
        "RuntimeError: executor shut down before the future completed",
        "ERROR: agent was stopped while training: reward is nan",
        "error: node was terminated by a non-terminator",
        "RuntimeError: instance was deleted while a view exists",
        "error: machine instr evicted from live interval",
        "RuntimeError: preempted request was not resumed by scheduler",
        "error: failed to acquire lock on context in pass manager: timeout",
        "nvme: bad tile id in packing",
        "remoting: the generator lost its seed",
        "BUG: scheduling pass hung on block 3",
        "CPU0 reference: error 0.3",
        "amdgpu test: error in column 3",
        "curl: div and grad do not cancel",
        "mount: no method named mount",
        "find: index not found in list",
        "cut: error: sequence too short",
        "sort: result not stable, got 3 1 2",
        "stat: variance is negative",
        "touch: event handler missing",
        "head: dimension 96 is not supported",
        "tail: iteration lost its predicate",
        "tee: stream diverged",
        "date: failed to parse '2024-99'",
        "install: cannot instantiate template",
        "flux: gradient flow test failed on device",
        "thermal: simulation failed at node 88",
        "singularity: solver process failed at pole",
        "kernel: error 0.1 on device cuda:0 above limit",
        "nvidia backend: timeout while running test_x",
        "wget: bad weight for edge",
        "rsync: reduce-scatter sync mismatch",
        "scp: set cover problem is infeasible",
        "ls: least squares failed",
        "env: step() missing action",
        "cat: cannot concatenate list with str",
        "goma: optimizer process diverged",
        "nomad: service test failed in unit 3",
        "colima: linked list corrupted by push",
        "ERROR: gpu kernel timeout in benchmark gemm",
        "RuntimeError: node was lost while rewriting",
        "RuntimeError: No runners are registered for this pipeline",
        "RuntimeError: any executor is connected twice",
        "no agent in scene is connected",
        "RuntimeError: unable to remove element from container",
        "error: failed to attach debug info to container",
        "RuntimeError: cache corrupted: entry hash does not match source",
    ],
)
def test_what_programs_say_in_the_words_of_machines_is_never_infra(text: str) -> None:
    assert signature(text).cls != "infra"
