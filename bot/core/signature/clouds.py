"""What a cloud answers that has no machine to give: out of stock, or past what the account may have."""

from __future__ import annotations

import re

from bot.core.signature.model import INFRA, Found, Rank
from bot.core.signature.patterns import AnyOf
from bot.core.signature.wording import computed

# the codes that clouds answer with; no other program has such names
_STOCK = (
    ("aws", AnyOf(r"\b(?:Insufficient(?:Reserved)?(?:Instance|Host)?Capacity(?:OnHost)?|UnfulfillableCapacity)\b",
                  r"\bhave (?:enough|sufficient) \S+ capacity in the Availability Zone\b")),
    ("azure", AnyOf(r"\bSkuNotAvailable\b",
                    r"\b(?:Zonal|Overconstrained(?:Zonal)?)?Allocation(?:Failed|Request)\b",
                    r"\b(?:VM|instance) sizes? .{0,100}\bnot available in location\b")),
    ("gcp", AnyOf(r"\b(?:ZONE_)?RESOURCE_POOL_EXHAUSTED\w*",
                  r"\bdoes not have enough resources available to fulfill the request\b")),
    ("oci", AnyOf(r"\bOut of (?:host capacity|capacity for shape)\b")),
)  # fmt: skip
_LIMIT = AnyOf(
    r"\b(?P<code>(?:Instance|Vcpu|Request|Address|Volume|Snapshot|MaxSpotInstanceCount|SpotInstance\w{0,20})"
    r"Limit(?:Exceeded|Reached)|MaxSpotInstanceCountExceeded|InsufficientFreeAddressesInSubnet|QuotaExceeded"
    r"|QUOTA_EXCEEDED|LimitExceeded)\b(?! *\()",
)
_MACHINES = (
    r"(?:instances?|VMs?|virtual machines?|machines?|machine types?|spot|on-demand|zones?|clouds?"
    r"|fleet|launch requests?|node ?pools?|availability|provision\w*|shapes?|SKUs?|GPUs? types?)"
)
_LACKS = (
    r"(?:(?:in|not )sufficient|not enough|no|out of|lack of"
    r"|(?:n't|not) (?:currently )?have (?:enough|sufficient|any|the)"
    r"|exhausted)"
)
# in words: capacity of machines, not of a queue or a buffer
_WORDS = AnyOf(
    rf"\b{_LACKS}\b.{{0,40}}\bcapacity\b.{{0,80}}\b{_MACHINES}\b",
    rf"\b{_MACHINES}\b.{{0,120}}\b{_LACKS}\b.{{0,40}}\bcapacity\b",
    rf"\b{_MACHINES}\b.{{0,60}}\b(?:stock-?out|(?:temporarily )?out of stock|sold out)\b",
    rf"\bcapacity\b.{{0,40}}\b(?:unavailable|not available|exhausted)\b.{{0,80}}\b{_MACHINES}\b",
    r"\b(?:fail\w*|unable|could ?n[o']t|cannot) (?:to )?provision(?:ing)?\b.{0,60}"
    rf"\b(?:{_MACHINES}|resources|runners?|nodes?|clusters?|workers?)\b",
    r"\bno (?:GPU )?(?:instances|machines|VMs) (?:of (?:this|that|the requested) type )?(?:are )?(?:currently )?"
    r"available in\b",
)
_BUFFERS = re.compile(
    r"\b(?:queue|buffer|vector|cache|block|slot|stack|pool size|tensor|token|page|ring|heap|channel|expert|list|map"
    r"|pipeline|kernel|warp|shared)s?\b",
    re.I,
)


def stock(line: str) -> Found | None:
    """The machines that a cloud says in `line` it can't give, None where none speaks of them."""
    lowered = line.lower()
    for cloud, pattern in _STOCK:
        if pattern.search(line, lowered):
            return _found(line, "capacity", cloud)
    if found := _LIMIT.search(line, lowered):
        return _found(line, "limit", found["code"].lower())
    if _WORDS.search(line, lowered) and not _BUFFERS.search(line) and not computed(line):
        return _found(line, "capacity", "")
    return None


def _found(line: str, *key: str) -> Found:
    return Found("cloud", Rank.SERVICE, INFRA, key, line)
