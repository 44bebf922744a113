"""States facts about the machine code that the source does not show: vectorised accesses, spilled registers."""

from __future__ import annotations

from gemmsim.analysis.code.source_lines import LineTraffic
from gemmsim.analysis.evidence import Evidence

WORD_BYTES = 4


def compiler_facts(evidence: Evidence, lines: tuple[LineTraffic, ...]) -> tuple[str, ...]:
    """Return facts about a launch's machine code, one sentence each. `lines` is its memory traffic by source line."""
    facts = [_vector_fact(row) for row in lines if row.width_bytes > WORD_BYTES and row.space in ("shared", "global")]
    if evidence.program.local_bytes:
        facts.append(
            f"{evidence.program.local_bytes} bytes of local memory a thread: "
            "registers were spilled, a local array is indexed at run time, or printf finds its arguments there"
        )
    if lines and not any(instruction.sources for instruction in evidence.program.instructions):
        facts.append("the machine code has no source lines: it was compiled without -lineinfo")
    return tuple(facts)


def _vector_fact(row: LineTraffic) -> str:
    words = row.width_bytes // WORD_BYTES
    code = f" `{row.text}`:" if row.text else ":"
    named = row.static_count * words
    fact = f"{row.where}{code} {row.static_count} {row.mnemonic}, {words} words at a time, for {named} in the source"
    # A request whose lanes share one address asks for exactly the bytes of one thread.
    if row.op == "ld" and row.used_bytes == row.requests * row.width_bytes:
        fact += "; all lanes read the same address"
    return fact
