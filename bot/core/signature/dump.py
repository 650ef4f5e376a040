"""Crash dumps: the first frame that is the program's own, not the signal handler's or the runtime's."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"^\s*#\s?\d+:?\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?(?P<function>[^\n]{1,600})$")
_NOT_OURS = re.compile(
    r"PrintStackTrace|SignalHandler|RunSignalHandlers|CrashRecovery|__restore_rt|^(?:raise|abort|gsignal|clone3?"
    r"|start_thread|kill|tgkill|syscall|backtrace\w*|_?_?libc_\w+"
    r"|read|write|operator (?:new|delete)|operator\W{1,3}$|__interceptor_\w+|__asan_\w+|realloc|calloc"
    r"|__assert\w*|__GI_\w+|_*pthread_\w+|std::\w*terminate\w*|__cxa_\w+|__gnu_cxx\b|report_fatal_error"
    r"|llvm_unreachable\w*|memcpy\w*|memmove\w*|strlen\w*|malloc|free|\?\?|_?start|main)\b|^\(|^/|^llvm::(?:sys"
    r"|report_fatal|llvm_unreachable)|^[\w./+-]+\+0x|^[\w.-]+\.(?:so|dll)"
)
_GENERIC = re.compile(
    r"^(?:void |bool |auto |decltype\(auto\) )*(?:std|__gnu_cxx|llvm::(?:cast|dyn_cast|isa|SmallVector|ArrayRef"
    r"|function_ref|detail))\b|^mlir::detail::"
)
# where a sanitizer saw it: after the function, of which it says no more
_AT = re.compile(r" (?:\(\S+\+0x[0-9a-f]+\)(?: \(BuildId: \w+\))?|\S+?:\d+(?::\d+)?(?: \(\S+\+0x[0-9a-f]+\))?)$")
_ARGUMENTS = re.compile(r"[(<].*$")


def frame_of(line: str) -> str:
    """The function of a native stack frame, "" where it is none or not the program's own."""
    found = _NUMBERED.match(line)
    if not found:
        return ""
    function = _AT.sub("", found["function"].strip())
    if _NOT_OURS.search(function) or _GENERIC.search(function):
        return ""
    name = _ARGUMENTS.sub("", function).strip()
    return name.split(" ")[-1][:120] if re.search(r"[A-Za-z]{3}", name) else ""
