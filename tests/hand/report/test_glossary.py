"""The glossary: complete, found by any spelling, and right about the numbers of a run."""

from __future__ import annotations

import re

import pytest
from report_factory import evidence, report

from gemmsim.analysis.hardware.utilisation import ATOMICS, DATA_STAGE, DRAM, ISSUE, L2, utilisations
from gemmsim.api import analyze
from gemmsim.checks.quantities import OF_LAUNCH, OF_LINES
from gemmsim.gpu import load_gpu
from gemmsim.isa.opcodes import OPCODES
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.glossary.entries import GLOSSARY, Kind, lookup, of_kind
from gemmsim.report.glossary.explain import render_index, render_text
from gemmsim.report.glossary.places import places
from gemmsim.report.glossary.values import fill, names_in, values_of, worked_lines
from gemmsim.report.metrics import FAMILIES, METRICS
from gemmsim.report.text import render
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.errors import GemmsimError

# Words of the reports and of the issue that each must be explained.
TERMS = """
    wavefront, sector, request, occupancy, roofline, bank, wave, tail, coalescing, carve-out, scoreboard, tile, latency,
    warp, block, grid, SM, pipe, stall, L1, L2, DRAM, register, divergence, swizzle, padding, broadcast, GEMM,
    bottleneck, bank conflict, ridge point, arithmetic intensity, issue slot, data stage, launch overhead
"""
TERMS = tuple(term.strip() for term in TERMS.split(","))


# kind of a bottleneck -> its word in the report
BOTTLENECKS = {
    "launch": "launch overhead",
    "issue": ISSUE,
    "l1_data": DATA_STAGE,
    "l2": L2,
    "dram": DRAM,
    "atomics": ATOMICS,
    "pipe": "pipe",
}
BOTTLENECKS |= {"small_grid": "too few blocks", "latency": "latency"}


@pytest.fixture(scope="module")
def run():
    return analyze(ladder_launch(LadderCase("tiled", 64, 32, 48), load_gpu("a100-80gb")))


def test_every_metric_and_stall_reason_has_an_entry():
    assert set(METRICS) <= {entry.name for entry in of_kind(Kind.METRIC)}
    assert {entry.name for entry in of_kind(Kind.STALL)} == set(STALL_REASONS)
    assert set(TERMS) <= {entry.name for entry in of_kind(Kind.TERM)}
    assert len(FAMILIES) > 60  # the table was read


def unit_names() -> set[str]:
    """The units that a report can print: pipes of the opcode table, and the halves of fma."""
    ports = {row.port for row in OPCODES.values()} - {"", "warpgroup", "fma", "half"} | {"fp16"}
    return {f"{port} pipe" for port in ports | {"fmaheavy", "fmalite"}} | {ISSUE, DATA_STAGE, L2, DRAM}


@pytest.mark.parametrize("name", sorted(unit_names()))
def test_every_unit_of_a_report_is_explained(name):
    assert lookup(name).kind is Kind.TERM


@pytest.mark.parametrize("size", [64, 1024])
def test_what_a_report_names_is_explained(size):
    """Units, stall reasons, counters, limits of the occupancy and the kind of the bottleneck."""
    run = analyze(ladder_launch(LadderCase("wgmma_cluster", size, size, size), load_gpu("h200")))
    names = (
        {use.unit for use in utilisations(run.evidence)} | set(run.evidence.timing.stalls) | set(run.evidence.counters)
    )
    for name in names | {BOTTLENECKS[run.bottleneck.kind]}:
        lookup(name)


def words_of_tables(text: str) -> set[str]:
    """What the tables of a rendered report name: the cells of a head, and of a row its first cell that is no number.

    Cells are two spaces or more apart. A head has no number in it. Lines of source code begin with a number, which
    nothing but code follows.
    """
    words: set[str] = set()
    for line in text.splitlines():
        cells = [cell for cell in re.split(r" {2,}", line.strip()) if cell]
        if not line.startswith("  ") or line.lstrip().startswith("*") or len(cells) < 2:
            continue
        names = [cell for cell in cells if not re.match(r"[\d.,%?-]+$", cell)]
        head = len(names) == len(cells)
        if head or cells[0] == names[0] or re.match(r"\d+ [A-Z]{3}", cells[1]):
            words |= set(names if head else names[:1])
    return {re.sub(r"^\d+ (?=[A-Z]{3})| ?\(.*\)$|^<- ", "", word) for word in words if not word.startswith("#")}


CASES = [("tiled", 64, "a100-80gb"), ("wgmma_cluster", 256, "h200")]


@pytest.mark.parametrize(("kernel", "size", "gpu"), CASES)
def test_the_tables_of_a_rendered_report_say_nothing_that_is_not_explained(kernel, size, gpu):
    text = render(analyze(ladder_launch(LadderCase(kernel, size, size, size), load_gpu(gpu))))
    words = words_of_tables(text)
    assert {"unit", "of peak", "ridge", "sectors/req", "L1 hit", "wavefr/req", "conflicts", "reason"} <= words
    assert {"lsu pipe", "issue slots", "L2", "registers", "multiply-add", "wait"} <= words
    assert any(word.startswith("STG") or word.startswith("UTMASTG") for word in words)
    for word in words:
        lookup(word)


@pytest.mark.parametrize("name", [*OF_LINES, *OF_LAUNCH])
def test_what_an_expectation_can_name_is_explained(name):
    assert lookup(name).kind is Kind.TERM


@pytest.mark.parametrize("name", ["LDG.E", "STS", "LDS.128", "STL", "BRA"])
def test_an_opcode_is_explained_by_its_row(name):
    entry = lookup(name)
    row = OPCODES[name.partition(".")[0]]
    assert str(row.mix) in entry.definition and (not row.memory or row.memory.space in entry.definition)
    assert render_text(entry).startswith(f"{row.name}, a machine instruction")


@pytest.mark.parametrize("name", GLOSSARY)
def test_an_entry_is_whole(name):
    entry = GLOSSARY[name]
    for text in (entry.title, entry.definition, entry.formula, entry.good, entry.fix):
        assert text.strip() == text and text.isascii() and "{" not in text
    for sentence in (entry.definition, entry.good, entry.fix):
        assert sentence.endswith(".")
    assert entry.sources and entry.see
    for other in entry.see:
        assert lookup(other).name != entry.name


def test_a_name_or_alias_belongs_to_one_entry():
    spellings = [s.lower().replace(" ", "_").replace("-", "_") for e in GLOSSARY.values() for s in (e.name, *e.aliases)]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Bank Conflicts", "bank conflict"),
        ("bank-conflict", "bank conflict"),
        ("long scoreboard", "long_scoreboard"),
        ("SMEM", "shared memory"),
        ("ridge", "ridge point"),
        ("barrier", "barrier"),
        ("syncthreads", "synchronisation"),
        ("waves", "wave"),
        ("HGMMA", "wgmma"),
        ("UTMALDG", "TMA"),
        ("producer", "warp specialisation"),
        ("lts__t_requests...", "lts__t_requests_srcunit_tex.sum"),
        ("launch__registers", "launch__registers_per_thread"),
    ],
)
def test_lookup_takes_other_spellings(typed, name):
    assert lookup(typed).name == name


def test_unknown_names_give_the_nearest_and_beginnings_their_candidates():
    with pytest.raises(GemmsimError, match=r"nothing is known of 'wavefrnt'.*did you mean 'wavefront'"):
        lookup("wavefrnt")
    with pytest.raises(GemmsimError, match=r"'l1tex__t_sectors\.\.\.' begins 18 names: .* and 12 more"):
        lookup("l1tex__t_sectors...")
    with pytest.raises(GemmsimError, match="nothing is known"):
        lookup("...")


def test_places_are_names_of_values(run):
    known = set(values_of(run)) | set(METRICS)
    used = {name for entry in GLOSSARY.values() for line in entry.worked for name in names_in(line)}
    assert used - known == set()
    assert len(used) > 120


def test_the_formulas_hold_for_the_numbers_put_into_them(run):
    """Both sides of each `... = ...` line, worked out from the printed numbers; 4 digits of each are printed."""
    values, checked = values_of(run), 0
    for entry in GLOSSARY.values():
        for line in worked_lines(entry, values):
            assert not names_in(line)
            left, equals, right = line.partition(" = ")
            if not equals or " / 0 " in left:
                continue
            words_out = re.sub(r"[A-Za-z][\w-]*(/s)?", " ", left.replace(",", ""))
            assert re.fullmatch(r"[\d.+*/() -]+", words_out), line
            result = re.match(r"-?[\d,.]*\d", right)
            assert result, line
            expected = float(result.group().replace(",", ""))
            assert eval(words_out) == pytest.approx(expected, rel=2e-3, abs=1e-9), line
            checked += 1
    assert checked > 60


def test_numbers_of_a_launch_by_hand():
    """The factory's launch: 216 blocks of 256 threads on 108 SMs; 8 stall cycles, 6 of them short scoreboard."""
    values = values_of(report())
    assert values["launch.warps_per_block"] == 8 and values["launch.threads"] == 216 * 256
    assert values["stall.sum"] == 8 and values["stall_pct.short_scoreboard"] == 75
    assert values["stall.largest"] == "short_scoreboard"
    assert values["space.global.excess"] == 3240 / 440
    assert values["instructions.per_multiply_add"] == 1060 / 400
    assert values["timing.kernel_us"] == pytest.approx(10.0)


def test_lines_without_their_numbers_are_left_out():
    assert fill("<a> of <b>", {"a": 1.0}) is None
    assert fill("<a> of <b>", {"a": 1.0, "b": float("nan")}) is None
    assert fill("<a> of <b.c>", {"a": 1.5, "b.c": "all"}) == "1.5 of all"
    text = render_text(lookup("smsp__inst_issued.sum"), report())
    assert "not predicted" in text


def test_places_of_a_stall_reason_are_source_lines():
    given = evidence()
    reason = STALL_REASONS.index("short_scoreboard")
    given.timing.stall_samples[2, reason] = 300  # LDS of line 3
    given.timing.stall_samples[5, reason] = 100  # STG of line 4
    assert places(lookup("short_scoreboard"), report(given)) == [
        "75 % at line 3: acc += tile_a[ty, k] * tile_b[k, tx]",
        "25 % at line 4: C[row, col] = acc",
    ]


def test_places_of_a_memory_metric_are_its_accesses():
    metric = lookup("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
    [line] = places(metric, report())
    assert line == "line 2: LDG, 100 requests, 3,200 sectors, 400 if packed: a = A[row, k]"
    shared = places(lookup("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"), report())
    assert [line.partition(",")[0] for line in shared] == ["line 3: LDS", "line 3: LDS.128"]
    assert places(lookup("occupancy"), report()) == []


def test_text_fits_80_columns(run):
    for entry in GLOSSARY.values():
        for line in render_text(entry, run).splitlines():
            assert line.isascii() and (len(line) <= 80 or "__" in line or "://" in line), line
    index = render_index()
    assert all(len(line) <= 80 for line in index.splitlines())
    assert all(f"  {name}: " in index for name in (*STALL_REASONS, *TERMS))
