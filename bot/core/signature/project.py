"""How a checkout, its packages, its shell steps and its workflows fail."""

from __future__ import annotations

from bot.core.signature.model import CODE, HARNESS, UNKNOWN, Rank
from bot.core.signature.rule import LINE, NONE, rules

MERGE = rules(
    CODE,
    Rank.SERVICE,
    LINE,
    (
        "merge conflict",
        r"CONFLICT \((?P<what>[\w/ ]+)\)",
        r"Merge conflict in (?P<other>\S+)",
        r"could not apply [0-9a-f]{7}",
        r"patch (?:does not apply|failed:)",
        r"hunks? FAILED",
        r"Automatic merge failed",
    ),
)
LINT = rules(
    CODE,
    Rank.SERVICE,
    NONE,
    (
        "lint",
        r"^(?P<hook>[\w /().-]{2,80}?)\.{3,}(?:\([^)]*\))?Failed$",
        r"hook id: (?P<what>[\w-]+)",
        r"^>>> Lint for (?P<file>\S+)",
        r"(?P<spaces>have trailing (?:spaces|whitespace))",
        r"(?P<tool>would reformat|Code style issues found|files? would be reformatted|code should be clang-formatted"
        r"|files were modified by this hook|Imports are incorrectly sorted)",
    ),
)
GIT = rules(
    HARNESS,
    Rank.SERVICE,
    LINE,
    (
        "git ref",
        r"(?:couldn't find remote ref|Remote branch|pathspec|reference is not a tree|bad revision|unknown revision"
        r"|ambiguous argument|invalid reference|not our ref|not a valid object name|unadvertised object"
        r"|not a commit|did not match any file|bad object|unable to read tree|Needed a single revision"
        r"|no merge base|did not contain)\b",
        r"unable to checkout '\w{7,}",
    ),
    (
        "git ownership",
        r"dubious ownership",
        r"safe\.directory",
    ),
    (
        "git access",
        r"Repository not found",
        r"invalid credentials",
        r"Support for password authentication",
        r"does not appear to be a git repository",
        r"Write access to repository not granted",
        r"unable to access .{1,200}(?:returned )?error: 40[134]",
    ),
    (
        "git repository",
        r"not a git repository",
        r"refusing to (?:merge unrelated|fetch into)",
        r"shallow (?:update|clone|file)",
        r"submodule .{0,120}(?:not initialized|fail|no url|no submodule mapping)",
        r"No url found for submodule",
        r"destination path .{1,200}already exists",
        r"would be overwritten",
        r"Please tell me who you are",
        r"empty ident name",
        r"(?:checkout|working tree|repository|worktree)\b.{0,20} dirty\b",
        r"no submodule mapping",
    ),
    (
        "git push",
        r"! \[(?:remote )?rejected\]",
        r"failed to push some refs",
        r"protected branch",
        r"non-fast-forward",
        r"GH\d{3}:",
    ),
)
PACKAGES = rules(
    HARNESS,
    Rank.SERVICE,
    LINE,
    (
        "no package",
        r"No matching distribution found for (?P<what>[\w.\[\]-]+)",
        r"Could not find a version that satisfies the requirement (?P<other>[\w.\[\]-]+)",
        r"Unable to locate package (?P<apt>\S+)",
        r"(?:E: )?Package '?(?P<apt2>[\w.+-]+)'? has no installation candidate",
        r"No package (?P<rpm>\S+) available",
        r"Unable to find a match: (?P<match>\S+)",
        r"No match for argument:? (?P<dnf>\S+)",
        r"PackagesNotFoundError",
        r"404 .{0,30}npm",
        r"E404",
        r"Version '.{1,40}' for '(?P<apt3>[\w.+-]+)' was not found",
        r"no matching package named [`'](?P<crate>[\w-]+)",
        r"(?:nothing provides|PackageNotFound\w*:?) '?(?P<conda>[\w-]+)",
    ),
    (
        "package conflict",
        r"ResolutionImpossible",
        r"(?:conflicting|incompatible) dependenc",
        r"dependency (?:conflict|resol)",
        r"unmet dependencies",
        r"have conflicting",
        r"(?:requires|has requirement) .{1,80}, but you(?:'ll)? have",
        r"No solution found when resolving",
        r"because .{1,80} depends on",
        r"UnsatisfiableError|unsatisfiable constraints",
        r"held broken packages",
        r"version solving failed",
        r"ERESOLVE|unable to resolve dependency",
        r"failed to select a version for [`'](?P<crate>[\w-]+)",
    ),
    (
        "python version",
        r"requires (?:a different )?Python",
        r"InterpreterNotFound|could not find python interpreter",
        r"Requires-Python",
        r"python_requires",
        r"Python (?:version )?.{1,40}(?:is not supported|not supported|is required|or (?:newer|later|higher))",
        r"is not a supported wheel on this platform",
        r"compiled using NumPy 1\.x cannot be run",
        r"Version .{1,20} with arch.{1,20} not found",
    ),
    (
        "managed environment",
        r"externally-managed-environment",
        r"Can not perform a '--user' install",
        r"uninstall-no-record",
        r"Cannot uninstall (?P<what>\S+)",
    ),
    (
        "requirements file",
        r"Could not open requirements file",
        r"No such file or directory:? ['\"][^'\"]{0,300}?(?P<file>[\w-]*requirements[\w-]*\.(?:txt|in))['\"]",
        r"error: invalid command '(?P<command>\w+)'",
        r"Invalid requirement",
        r"does not appear to be a Python project",
        r"Neither 'setup.py' nor",
        r"No such extra",
    ),
    (
        "image missing",
        r"manifest (?:for .{1,200}? )?(?:not found|unknown)",
        r"pull access denied",
        r"repository does not exist",
        r"No such image",
        r"denied: (?:requested access|denied|permission|installation)",
        r"no matching manifest for",
        r"invalid reference format",
        r"unauthorized: (?:authentication|access)",
    ),
    (
        "image build",
        r"failed to solve(?!.{0,400}did not complete successfully)",
        r"Dockerfile parse error",
        r"failed to read dockerfile",
        r"COPY failed",
        r"failed to compute cache key",
        r"unknown instruction",
        r"dockerfile:\d+",
    ),
)
BUILDS = rules(
    CODE,
    Rank.OPAQUE,
    NONE,
    (
        "package build",
        r"Failed (?:building|to build) (?:wheel|editable|one or more wheels)(?: for (?P<what>\S+))?",
        r"Failed to build (?P<other>[\w-]+)",
        r"^Target (?P<target>//\S+) failed to build",
        r"Could not build wheels for (?P<these>[\w-]+)",
        r"metadata-generation-failed",
        r"Preparing metadata .{0,40}error",
        r"build backend",
        r"BackendUnavailable",
    ),
)
SHELL = rules(
    HARNESS,
    Rank.EXCEPTION,
    LINE,
    (
        "command missing",
        r"(?P<what>[\w./+-]+): (?:command )?not found$",
        r"(?:command not found|not recognized as an internal)\W*(?P<other>[\w.-]*)",
        r"version [`'](?P<libc>(?:GLIBC(?:XX)?|CXXABI)_[\d.]+)' not found",
        r"exec: \"?(?P<exec>[\w./-]+)\"?: (?:executable file not found|stat)",
        r"executable file not found",
        r"python[\d.]*: No module named (?P<module>\w+)",
        r"Cannot run program \"(?P<java>[\w./-]+)\"",
        r"env: ['‘]?(?P<env>[\w.-]+)['’]?: No such file",
        r"(?:line \d+|\bsh: \d+|\b(?:bash|zsh|dash)): (?:\d+: )?(?P<sh>\S+): No such file or directory$",
        r"'(?P<win>\w+)' is not recognized",
        r"bad interpreter",
        r"python[\d.]*: can't open file ['‘]?(?P<script>[^'’:]+)",
        r"^g?make(?:\[\d+\])?: (?P<make>\S+): No such file or directory$",
    ),
    (
        "command denied",
        r"(?P<what>[\w./+-]+): Permission denied$",
    ),
    (
        "shell syntax",
        r"syntax error near unexpected token",
        r"unexpected end of file$",
        r"unexpected EOF while looking",
        r"bad substitution",
        r"\[: .{0,40}(?:unary|binary|integer|too many)",
        r": not a valid identifier",
        r"invalid option",
    ),
)
# a path of what tests read
_DATA = (
    r"(?:[^'\"\s]{0,300}[/\\\\])?(?:(?:tests?|testing|unittests?)[/\\\\](?:[^'\"\s]{0,200}[/\\\\])?(?:[\w-]*data|fixtures?"
    r"|resources?|assets|samples?|goldens?|files|inputs?|snapshots?|expected|baselines?|cassettes|corpus|images?"
    r"|weights|models?)"
    r"|test[-_]?(?:data|files|fixtures|resources|assets|inputs|images))[/\\\\]"
)
_TESTS_FILE = (
    r"(?!/tmp/)(?:[^'\"\s]{0,300}[/\\\\])?tests?[/\\\\](?![^'\"\s]*\b(?:out|output|build|cache|dump|tmp|results?)s?[/\\\\])[^'\"\s]{0,300}"
    r"\.(?:json|ya?ml|txt|csv|npz|npy|pth?|pkl|png|jpe?g|wav|mp4|xml|toml|mlir|ll|ptx|h5|parquet|onnx|safetensors"
    r"|bin|gz|zip)"
)
TEST_DATA = rules(
    HARNESS,
    Rank.EXCEPTION,
    LINE,
    (
        "test data",
        rf"No such file or directory:? ['\"]{_DATA}(?P<what>[^'\"]+)",
        rf"(?:cannot|can't|could not|unable to) (?:open|find|load|stat|access"
        rf"|read)(?: file)?(?: at)? [`'\"]?{_DATA}(?P<other>[^'\"\s]+)",
        rf"No such file or directory:? ['\"]{_TESTS_FILE}['\"]",
        rf"(?:^|[\s'\"]){_DATA}(?P<this>[^'\"\s]+)['\"]? (?:was |is )?(?:not found|missing|does not exist)",
    ),
)
COMMANDS = rules(
    HARNESS,
    Rank.EXCEPTION,
    LINE,
    (
        "command missing",
        r"No such file or directory:? ['\"](?P<what>ninja|cmake|git|gcc|g\+\+|c\+\+|cc|clang\S*|nvcc|hipcc|docker"
        r"|nvidia-smi"
        r"|rocm-smi|rocminfo|amd-smi|FileCheck|spirv-[\w-]+|objdump|readelf|gdb|make|java|node|npm|ffmpeg|pip\d*"
        r"|ncu|nsys|which"
        r"|ccache|sccache|mpirun|mpiexec|ruff|black|mypy|clang-format|virtualenv|uv|tox|nox)['\"]",
    ),
)
FILES = rules(
    CODE,
    Rank.EXCEPTION,
    LINE,
    (
        "no such file",
        r"No such file or directory:? ['\"][^'\"]{1,300}(?P<temporary>\.tmp)[._-][^'\"]*['\"]",  # of a race for it
        r"No such file or directory:? ['\"](?P<what>[^'\"]+)",
        r"(?:cannot|can't|could not|unable to) (?:open|stat|access|read)(?: file)? [`'\"](?P<other>[^'\"]+)['\"]",
    ),
)
TOOLS = rules(
    UNKNOWN,
    Rank.EXCEPTION,
    NONE,
    (
        "tool missing",
        r"(?:cannot|can't|could not|unable to|failed to) (?:find|locate) (?:(?:the|executable|binary|program|tool"
        r"|command) )*[`'\"]?(?P<what>[a-z_]+)[\w.-]*[`'\"]?(?: (?:executable|binary|program|in PATH|on PATH"
        r"|in \$PATH).*)?\.?$",
        r"(?P<other>[\w-]+) (?:executable )?not found (?:in|on) (?:your |the )?\$?PATH",
        r"\b(?:linker|compiler|assembler|disassembler|binary|executable|tool"
        r"|program) [`'\"]?(?:\S{0,200}/)?(?P<named>[\w.+-]{2,60})"
        r"[`'\"]? (?:was |is |could )?not (?:be )?found\b",
        r"No such file or directory:? ['\"](?:[^'\"]{0,200}/)?(?P<own>ptxas[\w-]*|nvdisasm|cuobjdump|ld\.lld)['\"]",
    ),
)
WORKFLOW = rules(
    HARNESS,
    Rank.SERVICE,
    LINE,
    (
        "workflow syntax",
        r"is requesting '(?P<right>[^']+)', but is only allowed",
        r"Unexpected value '(?P<value>[^']+)'",
        r"Invalid workflow file.{5}",
        r"workflow is not valid",
        r"Unrecognized (?:named-value|function)",
        r"Unexpected (?:value|symbol|input)",
        r"(?:error|problem) parsing .{0,60}(?:ya?ml|workflow)",
        r"You have an error in your ya?ml",
        r"Required property is missing",
        r"\b(?:mapping values|(?:block|flow) (?:sequence|mapping|scalar|end|entry)s?"
        r"|plain scalar)\b.{0,40}(?:not allowed|expected|found)",
        r"yaml: (?:line|unmarshal)",
        r"expected <block end>",
        r"ScannerError",
        r"ParserError",
        r"could not find expected ':'",
        r"did not find expected",
        r"template is not valid",
        r"Unable to process (?:file )?command '",
        r"The [`'\"]?[\w-]+[`'\"]? command is (?:disabled|deprecated)",
        r"\.ya?ml \(Line: \d+, Col: \d+\)|^\(Line: \d+, Col: \d+\)",
        r"Error parsing fromJson",
        r"event triggers? defined",
        r"^jobs?:\S+ (?:config )?(?:should|must|needs?|contains?)\b",
        r"Error when evaluating",
        r"Matrix vector",
        r"Missing script",
        r"TemplateValidationException",
        r"not a valid (?:event|runner|shell)",
    ),
    (
        "workflow action",
        r"Unable to resolve action",
        r"Can't find 'action",
        r"unable to find version",
        r"Could not find file .{0,200}action\.ya?ml",
        r"Missing download info for",
        r"only supported on (?:Linux|Windows|macOS)",
        r"Cannot find module '[^']{0,200}/_actions/",
        r"(?:deprecated|no longer supported) version of [`'\"]?actions",
        r"uses a deprecated",
        r"not allowed (?:to be used )?in .{1,80}(?:repository|enterprise)",
        r"The process '.{1,200}' failed because one or more lines",
    ),
    (
        "workflow input",
        r"Input (?:required and not supplied|'.{1,80}' is not)",
        r"Input '?.{1,60}'? (?:is )?required",
        r"not supplied: (?P<what>[\w-]+)",
        r"(?:environment variable|secret|parameter|argument) .{0,60}(?:is not set|not set|is required|is missing"
        r"|must be set|undefined)",
        r"unbound variable",
        r"\b(?:get|set|define|provide|missing|export) (?:the )?(?P<env>[A-Z][A-Z0-9_]{3,60}) (?:env|environment)",
        r"parameter (?:null or )?not set",
    ),
    (
        "workflow rights",
        r"(?P<token>Resource not accessible by (?:integration|personal))",
        r"Must have admin rights",
        r"\brefusing to\b",
        r"gated repo",
        r"insufficient (?:scope|permission|privilege)",
        r"missing (?:the )?`?\w+`? (?:scope|permission)",
        r"(?:HTTP(?:Error)?|status(?: code)?|error|code|responded with)\W{1,4}(?:code )?40[13]\b",
        r"\b40[13][ :,-]{1,3}(?:Client Error|Forbidden|Unauthorized)",
    ),
    (
        "artifact missing",
        r"(?:Artifact|artifacts?) .{0,80}(?:not found|does not exist)",
        r"Unable to (?:find|download) (?:any |an )?artifact",
        r"No files were found with the provided path",
        r"no artifacts? (?:found|matching)",
        r"artifact with (?:this|the same) name already exists",
        r"\(409\) Conflict|\b409\b.{0,60}\bConflict\b",
        r"already contains file '|already exists for package|File already exists \('",
    ),
    (
        "not found",
        r"\bHTTP(?:/\d\S*)? (?:400|405|406|409|41[0-7]|422)\b",
        r"\[404\] |does not exist on the server",
        r"HTTPError: 4(?:00|09|22)\b",
        r"\b404[ :,-]{1,3}(?:Client Error|Not Found)",
        r"(?:HTTP(?:Error)?|status(?: code)?|error|code)\W{1,4}(?:code )?404\b",
    ),
)
