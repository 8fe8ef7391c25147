"""Graphs as SVG and plans as HTML, in notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from loops_support import program
from loopwright.loops import Graph

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def boxes(root: ElementTree.Element) -> dict[str, tuple[float, float, float, float]]:
    found = {}
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        title = group.find(f"{SVG}title").text.splitlines()[0]
        found[title] = tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
    return found


def test_a_graph_is_boxes_below_what_they_read():
    graph = program(
        "input A: f32[i=64, k=32]\ninput B: f32[k, j=48]\nsums = sum[k](A * B)\nC = max(sums, 0)\noutput C\n"
    )
    root = parsed(graph._repr_svg_())
    found = boxes(root)
    assert "input A" in found and "sums = sum[k](%2)" in found and "output C" in found
    assert "C = max(sums, 0.0)" in found, "numbers stand where they are read"
    top = {
        name.split()[-1 if name.startswith(("input", "output")) else 0]: at[1]
        for name, at in found.items()
    }
    assert top["A"] == top["B"] < top["%2"] < top["sums"]
    # Inside the picture, and none on top of another.
    width, height = float(root.get("width")), float(root.get("height"))
    rectangles = list(found.values())
    for x, y, wide, high in rectangles:
        assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height
    for at, (x, y, wide, high) in enumerate(rectangles):
        for x2, y2, wide2, high2 in rectangles[:at]:
            assert x + wide <= x2 or x2 + wide2 <= x or y + high <= y2 or y2 + high2 <= y
    assert len(list(root.iter(f"{SVG}path"))) == 2 * 5, "a line and a point for each edge"


def test_text_is_escaped():
    g = Graph()
    x = g.input("<script>alert('x & y')</script>", "f32", {"a<b": 4})
    g.output('"out"', (x + 1).named("<b>"))
    svg, html = g._repr_svg_(), g.plan(target="interp")._repr_html_()
    for text in (svg, html):
        assert "<script>" not in text and "&lt;b&gt;" in text
    assert "&lt;script&gt;" in svg
    parsed(svg)


def test_a_plan_shows_its_loops_costs_and_memory():
    graph = program(
        "input A: f32[i=64, k=32]\ninput B: f32[k, j=50]\nsums = sum[k](A * B)\noutput C = max(sums, 0)\n"
    )
    plan = graph.plan(
        "sums: i parallel, j/16, k, j vectorize\nC: i parallel, j/16, j", target="interp"
    )
    html = plan._repr_html_()
    assert ElementTree.fromstring(html.replace("&#39;", "'")) is not None
    text = re.sub(r"<[^>]*>", " ", html)
    for part in [
        "parallel",
        "vectorize",
        "64×",
        "4×, the last shorter",
        "private, 64 B",
        "output C",
        "%",
    ]:
        assert part in text, part
    shares = [float(share) for share in re.findall(r"width:([0-9.]+)%;", html)]
    assert max(shares) > 99 and all(0 <= share <= 100 for share in shares)
    assert len(shares) == len(plan.tree), "a bar for each place"


def test_every_kind_of_node_has_a_picture():
    graph = program(
        "size N = 6\ninput x: f32[i=N]\nstate s: f32[i]\nconst w: f32[k] = [1, 2, 3]\ninput at: i64[n=4]\n"
        "a = x[i - 1] if i % 2 == 0 else 0\nb = cumsum[i](a)\nc = sort[i](b)\nd = argmax[i](c)\ne = x[at]\n"
        "f = scatter[i, sum](x, at, e)\nupdate s = s + f\noutput y = i32(max[k](w))\noutput d, e\n"
        "output z = b * f32(i) + f32(N)\n"
    )
    found = boxes(parsed(graph._repr_svg_()))
    text = "\n".join(found)
    for part in [
        "state s",
        "if",
        "scan_sum[i]",
        "sort[i]",
        "argmax[i]",
        "gather[i]",
        "scatter[i]",
        "update s",
    ]:
        assert part in text, part


def test_an_empty_picture_is_one():
    g = Graph()
    g.output("y", g.constant(3.0))
    assert "output y" in boxes(parsed(g._repr_svg_()))
