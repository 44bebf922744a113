"""How long loads take while all SMs of an H200 load, read off its record (docs/model/l2-dram.md)."""

import json
from pathlib import Path

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.spec import Rates

MEASURED = json.loads(Path(__file__).with_name("h200_loaded_latency.json").read_text(encoding="utf-8"))
CYCLES = {tuple(row[:-1]): row[-1] for row in MEASURED["rows"]}
SMS = 132
H200 = load_gpu("h200")


def bytes_per_cycle(word: int, blocks: int, warps: int, loads: int) -> float:
    """What each SM gets from L2."""
    return 32 * word * warps * loads / CYCLES["l2", word, blocks, warps, loads]


@pytest.mark.parametrize("loads", [1, 4])
@pytest.mark.parametrize("word", [4, 16])
@pytest.mark.parametrize("sms", [16, 33, 66])
def test_more_sms_wait_longer_as_the_preset_has_it(sms: int, word: int, loads: int) -> None:
    """Within 6 cycles of what the model adds for so many SMs, the mean of one, two and four warps."""
    counted = [CYCLES["l2", word, sms, warps, loads] - CYCLES["l2", word, 1, warps, loads] for warps in (1, 2, 4)]
    latency = [Rates.share(H200, number, H200.clock.sm_load_hz).l2_latency_cycles for number in (1, sms)]
    assert sum(counted) / 3 == pytest.approx(latency[1] - latency[0], abs=6)


@pytest.mark.parametrize("word", [4, 16])
def test_the_slowest_of_many_sms_waits_longer_for_l2_than_one(word: int) -> None:
    """A warp an SM, one load at a time: 12 to 20 cycles more on 33 SMs and on all, though L2 is idle all the same."""
    alone = CYCLES["l2", word, 1, 1, 1]
    assert all(12 < CYCLES["l2", word, blocks, 1, 1] - alone < 23 for blocks in (33, 66, SMS))


def test_load_adds_to_the_latency_long_before_l2_is_full() -> None:
    """A third of what L2 gives adds little; at 60 % of it 128-bit loads take 8 % longer, at 90 % a fifth."""
    idle = CYCLES["l2", 16, SMS, 1, 4]
    assert [round(CYCLES["l2", 16, SMS, warps, 4] / idle, 2) for warps in (2, 4)] == [1.02, 1.07]
    assert bytes_per_cycle(16, SMS, 4, 4) == pytest.approx(19.5, rel=0.02)


def test_what_one_sm_gets_depends_on_how_many_ask() -> None:
    """127 bytes a cycle alone, 90 on 16 SMs, 60 on 33 and on 66, 33 where all 132 ask."""
    found = [bytes_per_cycle(16, blocks, 32, 8) for blocks in (1, 16, 33, 66, SMS)]
    assert found == pytest.approx([127, 90, 60, 60, 34], rel=0.03)


def test_dram_answers_later_where_all_sms_stream() -> None:
    """765 to 800 cycles for a load of 512 bytes, where a pointer chase takes 664; 17.4 bytes a cycle at most."""
    assert all(760 < CYCLES["dram", 16, SMS, warps, 1] < 805 for warps in (2, 4, 8))
    assert 32 * 16 * 32 * 4 / CYCLES["dram", 16, SMS, 32, 4] == pytest.approx(17.4, rel=0.01)
