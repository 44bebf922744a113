"""Pictures: what they show is what the data say, nothing is told by colour alone, no text is cut off or covered."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations

import pytest
import report_factory
from launch_summary_factory import rung

from gemmsim.analysis.studies.comparison import compare_launches
from gemmsim.analysis.studies.ranking import Point, Prediction, Status, SweepResult, rank
from gemmsim.cli.main import main
from gemmsim.support.errors import GemmsimError

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from gemmsim.report.plots.figure import COLOURS, DASHES, MARKERS, figure_bytes, figure_format
from gemmsim.report.plots.ladder import ladder_figure
from gemmsim.report.plots.memory import memory_figure
from gemmsim.report.plots.roofline import roofline_figure
from gemmsim.report.plots.sweep import heat_tables, sweep_heat_figure, sweep_scaling_figure
from gemmsim.report.plots.tables import Curve, HeatTable, heat_figure, scaling_figure


def texts(figure):
    """Every text that is drawn, laid out."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high or not axes.axison:
                    hidden |= {tick.label1, tick.label2}
        if not axes.axison:
            hidden |= {axes.xaxis.label, axes.yaxis.label}
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    return [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in found]


def check_layout(figure):
    drawn = texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in drawn:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"cut off: {text!r}"
    for (one, a), (other, b) in combinations(drawn, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 1, f"{one!r} and {other!r} overlap"
    return [text for text, _ in drawn]


def result(time_us, tflops=None, size=1024, gpu="h200", **tunables):
    prediction = Prediction(
        time_us, tflops, 10.0, "l1_data", "L1", "", 32, 0, 0, 10, 1.0, 100.0, 90.0, 1e5, None, "native"
    )
    point = Point("warptiled", tunables, size, size, size, "f32", gpu)
    return SweepResult("", point, Status.PREDICTED, prediction, "", 1.0)


def test_styles_differ_without_their_colours():
    assert len(set(MARKERS)) == len(MARKERS) >= len(COLOURS)
    assert len({str(dash) for dash in DASHES}) == len(DASHES) == len(COLOURS) == len(set(COLOURS))


def test_roofline_points_are_where_the_report_puts_them():
    report = report_factory.report()
    line = report.evidence.roofline
    figure = roofline_figure(report)
    said = " ".join(check_layout(figure))
    [axes] = figure.axes
    points = {(round(x[0], 9), round(y[0], 12)) for x, y in (a.get_data() for a in axes.lines) if len(x) == 1}
    for level in line.levels:
        x = round(level.intensity_flops_per_byte, 9)
        assert (x, round(line.achieved_flops / 1e12, 12)) in points
        assert (x, round(level.attainable_flops / 1e12, 12)) in points
        assert f"{level.name.upper()}: {level.peak_bytes_per_s / 1e9:,.0f} GB/s" in said
    assert f"fp32 peak {line.peak_flops / 1e12:.1f} TFLOP/s" in said and "bound by L1" in said
    roofs = [artist for artist in axes.lines if artist.get_label().startswith(("DRAM", "L2", "L1"))]
    assert len({artist.get_linestyle() for artist in roofs}) == len({artist.get_marker() for artist in roofs}) == 3


def test_roofline_where_points_coincide_or_are_missing():
    given = report_factory.evidence()
    dram, l2, l1 = given.roofline.levels
    same = replace(dram, intensity_flops_per_byte=l2.intensity_flops_per_byte * 1.1)
    nothing = replace(l1, intensity_flops_per_byte=float("inf"), bytes_moved=0.0)
    report = report_factory.report(replace(given, roofline=replace(given.roofline, levels=(same, l2, nothing))))
    said = check_layout(roofline_figure(report))
    assert "L2, DRAM" in said and any("nothing moved" in text for text in said)


def test_no_roofline_without_counted_operations():
    given = report_factory.evidence()
    without = replace(given, roofline=replace(given.roofline, flops=0.0))
    with pytest.raises(GemmsimError, match="number of operations is not known"):
        roofline_figure(report_factory.report(without))


def test_memory_chart_has_every_flow_with_its_numbers():
    figure = memory_figure(report_factory.report())
    said = check_layout(figure)
    assert "global loads: 102 KB\n100 requests" in said  # 3,200 sectors of 32 bytes
    assert "global stores: 1.28 KB\n10 requests" in said
    assert "shared loads: 52.8 KB\n500 requests, 1,000 wavefronts" in said
    assert "reads\n25.6 KB" in said and "writes\n1.28 KB" in said  # 800 and 40 sectors between L1 and L2
    assert any("400\nbank conflicts" in text for text in said) and not any("local" in text for text in said)


def test_memory_chart_with_spills_and_large_numbers():
    large = {"requests": 1.5e9, "sectors": 6e9, "l2_sectors": 6e9, "wavefronts": 3e9, "used_bytes": 1.9e11}
    rows = tuple(
        report_factory.traffic(0, space, op, 4, **large)
        for space in ("global", "local", "shared")
        for op in ("ld", "st")
    )
    given = report_factory.evidence(rows=rows)
    given = replace(given, counters={**given.counters, "dram__bytes_read.sum": 1.5e12, "dram__bytes_write.sum": 2.5e11})
    said = check_layout(memory_figure(report_factory.report(given)))
    assert "local stores: 192 GB\n1.5 G requests" in said and "reads\n1.5 TB" in said


def test_memory_chart_with_copies_to_shared_memory():
    """TMA's loads, each sector for two SMs, its stores, and cp.async."""
    rows = (
        report_factory.traffic(0, "global", "ldgsts", 16, requests=10, sectors=160, l2_sectors=80),
        report_factory.traffic(1, "global", "tma_ld", 16, requests=5, sectors=3200, l2_sectors=3200, receivers=2.0),
        report_factory.traffic(5, "global", "tma_st", 16, requests=2, sectors=640, l2_sectors=640),
    )
    said = check_layout(memory_figure(report_factory.report(report_factory.evidence(rows=rows))))
    assert "TMA loads: 102 KB\n205 KB arrive" in said and "TMA stores: 20.5 KB\n2 requests" in said
    assert "cp.async: 5.12 KB\n10 requests" in said


def ladder(by_gpu=False):
    rungs = [
        rung(),
        rung(name="tensorcore_double_buffered", time_us=501.0, flops=1.002e9),
        rung(name="of another dtype", dtype="f16", time_us=99_999.0, peak_flops=1e12),
        rung(name="whole numbers", precision="integer", flops=0.0, time_us=100.0),
    ]
    return compare_launches((64, 64, 64), rungs, (), by_gpu)


def test_ladder_has_a_bar_a_rung_as_long_as_it_is_fast():
    comparison = ladder()
    figure = ladder_figure(comparison)
    said = check_layout(figure)
    assert len(figure.axes) == len(comparison.groups) == 3
    widths = [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
    assert widths[0] == pytest.approx([1, 2])  # TFLOP/s: 1.002e9 operations in 1002 and 501 us
    assert widths[2] == pytest.approx([10_000])
    assert any("2.00x" in text and "501 us" in text for text in said)
    assert {"tiled", "tensorcore_double_buffered", "whole numbers"} <= set(said)


def test_heat_map_of_two_tunables():
    results = [result(100 / t, t, bm=bm, bn=bn) for bm, bn, t in ((32, 64, 1.0), (32, 128, 4.0), (64, 64, 2.5))]
    results += [result(200 / t, t, size=2048, bm=32, bn=64 * n) for n, t in ((1, 3.0), (2, 5.0))]
    first, second = heat_tables(rank(["bm", "bn"], results, (), 0))
    assert (first.x_name, first.y_name) == ("bm", "bn")
    assert (first.x_labels, first.y_labels) == (("32", "64"), ("64", "128"))
    assert first.cells == ((1.0, 2.5), (4.0, None)) and first.best == (1, 0)
    assert second.title == "size 2048 on h200" and second.cells == ((3.0,), (5.0,))
    figure = sweep_heat_figure(rank(["bm", "bn"], results, (), 0))
    said = check_layout(figure)
    assert {"1.00", "2.50", "4.00", "3.00", "5.00"} <= set(said)
    hatched = [p for axes in figure.axes for p in axes.patches if isinstance(p, Rectangle) and p.get_hatch()]
    assert len(hatched) == 1


def test_heat_map_takes_the_best_over_other_tunables_and_time_where_there_are_no_operations():
    results = [result(t, bm=bm, bn=bn, bk=bk) for bm in (1, 2) for bn in (1, 2, 3) for bk, t in ((8, 9.0), (16, 7.0))]
    [table] = heat_tables(rank(["bm", "bn", "bk"], results, (), 0))
    assert (table.x_name, table.y_name, table.unit) == ("bn", "bm", "us")
    assert table.title.endswith("best over bk") and set(table.cells) == {(7.0, 7.0, 7.0)}
    assert replace(table, cells=((3.0, 2.0, 2.0), (4.0, 2.0, 5.0))).best == (0, 1)


def test_heat_map_of_sizes_and_gpus():
    results = [result(n / 10, 1.0, size=n, gpu=gpu) for n in (256, 1024) for gpu in ("h200", "a100")]
    [table] = heat_tables(rank([], results, (), 0))
    assert (table.x_name, table.y_name, table.x_labels, table.y_labels) == (
        "size", "GPU", ("256", "1024"), ("a100", "h200"),
    )  # fmt: skip
    with pytest.raises(GemmsimError, match="two things that vary"):
        heat_tables(rank([], results[:1], (), 0))
    one = [result(n, 1.0, size=n, tile=tile) for n in (256, 1024) for tile in (8, 16)]
    [table] = heat_tables(rank(["tile"], one, (), 0))
    assert (table.x_name, table.y_labels) == ("tile", ("256", "1024"))


def test_every_cell_is_readable_in_grey():
    """Digits stand out from their cell by a contrast of at least 4.5, as WCAG 2 asks."""
    cells = tuple(tuple(10.0 * row + column for column in range(10)) for row in range(10))
    labels = tuple(map(str, range(10)))
    figure = heat_figure("", "", [HeatTable("t", "x", "y", labels, labels, cells, "us", False)])
    check_layout(figure)

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgba(colour)[:3]]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    [axes] = figure.axes
    inks = {(t.get_position()): t.get_color() for t in axes.texts}
    grounds = [p for p in axes.patches if p.get_fill()]
    assert len(inks) == len(grounds) == 100
    for ground in grounds:
        ink = inks[ground.get_x() + 0.5, ground.get_y() + 0.5]
        dark, light = sorted((luminance(ink), luminance(ground.get_facecolor())))
        assert (light + 0.05) / (dark + 0.05) > 4.5
    shades = [luminance(p.get_facecolor()) for p in grounds]
    assert shades == sorted(shades)  # in grey, more is lighter


def test_too_large_or_empty_tables_are_refused():
    labels = tuple(map(str, range(41)))
    with pytest.raises(GemmsimError, match="too many to read"):
        heat_figure("", "", [HeatTable("t", "x", "y", labels, ("0",), (tuple(range(41)),), "us", False)])
    with pytest.raises(GemmsimError, match="no results"):
        heat_figure("", "", [HeatTable("t", "x", "y", ("0",), ("0",), ((None,),), "us", False)])
    with pytest.raises(GemmsimError, match="no results"):
        scaling_figure("", "", "us", [Curve("a", ())])


def test_scaling_curves():
    results = [
        result(1.0, n / 100 * factor, size=n, gpu=gpu, tile=tile)
        for n in (256, 512, 1000, 1024, 4096)
        for gpu, factor in (("h200", 2), ("a100-80gb", 1))
        for tile in (8, 16)
    ]
    figure = sweep_scaling_figure(rank(["tile"], results, (), 0))
    said = check_layout(figure)
    [axes] = figure.axes
    curves = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}
    assert curves["h200"] == ([256, 512, 1000, 1024, 4096], pytest.approx([5.12, 10.24, 20, 20.48, 81.92]))
    assert {"TFLOP/s", "256", "4096", "a100-80gb"} <= set(said) and "1024" not in said  # too near 1000 for a label
    assert len({(line.get_linestyle(), line.get_marker()) for line in axes.lines}) == len(axes.lines)
    with pytest.raises(GemmsimError, match="needs several sizes"):
        sweep_scaling_figure(rank(["tile"], [result(1.0, 1.0)], (), 0))


def test_as_many_curves_as_there_may_be_can_be_told_apart():
    curves = [Curve(f"GPU {n}", ((256.0, n + 1.0), (512.0, 2.0 * n + 1))) for n in range(8)]
    figure = scaling_figure("Scaling", "", "TFLOP/s", curves)
    check_layout(figure)
    styles = {(str(line.get_linestyle()), line.get_marker()) for line in figure.axes[0].lines}
    assert len(styles) == 8


@pytest.mark.parametrize("file_format", ["png", "svg", "pdf"])
def test_files_are_the_same_each_time_and_stand_alone(file_format):
    content = figure_bytes(roofline_figure(report_factory.report()), file_format)
    assert content == figure_bytes(roofline_figure(report_factory.report()), file_format)
    head = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF"}[file_format]
    assert content.startswith(head)
    if file_format == "svg":
        assert b"<title>Roofline: tiled" in content or b"<dc:title>Roofline: tiled" in content
        assert b"<image" not in content and b'href="http' not in content


def test_formats():
    assert figure_format("a.b/c.PNG") == "png"
    for path in ("roofline.gif", "roofline", ".png"):
        with pytest.raises(GemmsimError, match=r"written as \.png, \.svg, \.pdf"):
            figure_format(path)


def test_analyze_draws_both(tmp_path, capsys):
    roof, chart = tmp_path / "roofline.svg", tmp_path / "a.png"
    plots = ["--plot", str(roof), "--plot", f"memory:{chart}"]
    assert main(["analyze", "--kernel", "tiled", "--size", "32", *plots]) == 0
    assert roof.read_bytes().startswith(b"<?xml") and chart.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {roof}" in capsys.readouterr().err


def test_compare_draws_the_ladder(tmp_path, capsys):
    picture = tmp_path / "x.png"
    tasks = ["--kernel", "naive", "--kernel", "tiled", "--size", "32", "--jobs", "1"]
    assert main(["compare", *tasks, "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and "naive" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        ("a.png", "does not say which picture: --plot roofline:a.png, of roofline, memory"),
        ("roofline_memory.png", "does not say which picture"),
        ("pie:a.png", "no picture 'pie'; there are roofline, memory"),
        ("roofline.gif", "written as .png, .svg, .pdf"),
    ],
)
def test_a_wrong_plot_is_one_line_before_anything_is_computed(plot, message, capsys):
    assert main(["analyze", "--kernel", "tiled", "--size", "32", "--plot", plot]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["analyze", "--kernel", "tiled", "--size", "32", "--plot", "roofline.png"]) == 2
    said = capsys.readouterr()
    assert said.err == "error: pictures need matplotlib: pip install 'gemmsim[plot]'\n" and not said.out


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, capsys):
    target = tmp_path / "no" / "roofline.png"
    assert main(["analyze", "--kernel", "tiled", "--size", "32", "--plot", str(target)]) == 2
    assert "cannot write" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
