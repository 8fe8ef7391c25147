"""Lines 13 to 22, 35 and 36: plans and their changes. A change keeps the values on every device, or is refused."""

from __future__ import annotations

import numpy as np
import pytest
from loops_support import DEVICES, filled, on_every_device, program, same
from loopwright.loops import Graph, Plan, RefusedChange, RefusedSchedule, TextError, mutations

TABLE = "size M\nsize N\ninput x: i32[i=M, j=N]\noutput y = x * 3 + 1\n"
PRODUCT = (
    "size M\nsize K\ninput a: f32[i=M, k=K]\ninput b: f32[k, j=19]\noutput c = sum[k](a * b)\n"
)
CHAIN = "size N\ninput x: i32[i=N, j=6]\nh = x * x + 1\ns = sum[j](h)\noutput y = h - s\n"
WEIGHTED = "size N\nsize K\ninput x: i32[i=N, k=K]\ninput w: i32[k]\nt = w * w + 1\noutput y = sum[k](x * t)\n"
TURNED = "size N\ninput x: i32[i=N, j=6]\nh = x * x + 1\nleft = h[i, 5 - j]\noutput y = h - left\n"
FOLDS = (
    "size M\nsize K\ninput x: i32[i=M, k=K]\ninput z: f32[i, k]\noutput s = sum[k](x)\noutput m = max[k](x)\n"
    "output fs = sum[k](z)\noutput fm = max[k](z)\n"
)
WINDOW = "size N\ninput x: i32[i=N, j=5]\ndim o = N\npadded[o, j] = x[o - 1, j] else 7\noutput y = padded * 2\n"
ONE = [{"N": 0}, {"N": 1}, {"N": 7}, {"N": 16}]
TWO = [{"M": 5, "N": 7}, {"M": 8, "N": 16}, {"M": 0, "N": 4}]
FOLDED = [{"M": 5, "K": 7}, {"M": 3, "K": 16}, {"M": 2, "K": 1}, {"M": 1, "K": 0}]


def keeps(device: str, text: str, plans, sizes=({},)) -> list[Plan]:
    """Every plan of a row gives what the reference does, at every size. `plans` makes the row of a first plan."""
    graph = program(text)
    row = plans(graph)
    for values in sizes:
        given = filled(graph, **values)
        expected = graph.evaluate(**given)
        for plan in row:
            got = plan.compile(device, strict=True)(**given)
            for name, value in expected.items():
                same(got[name], value, f"`{name}` at {values} on {device} by\n{plan.schedule}")
    return row


def row(first: Plan, *changes) -> list[Plan]:
    """The plans after each change: a text, or a function of the plan before."""
    plans = [first]
    for change in changes:
        plan = plans[-1]
        plans.append(plan.mutate(change) if isinstance(change, str) else change(plan))
    return plans


@on_every_device
def test_line_13_split_with_a_tail_then_swap(device):
    def plans(graph: Graph):
        return row(
            graph.plan("y: i, j"),
            lambda plan: plan.split("y", "j", 4),
            lambda plan: plan.swap("y", "i", "j/4"),
            lambda plan: plan.swap("y", "i", "j"),
            lambda plan: plan.split("y", "i", 3),
            lambda plan: plan.swap("y", "j", "i/3"),
        )

    last = keeps(device, TABLE, plans, TWO)[-1]
    assert last.schedule == "loopwright schedule 1\ny: j/4, i/3, j, i\n"


@on_every_device
def test_line_14_nested_tails(device):
    # 405 elements as 10 rounds and 15 elements, 4 and 3, 4 and 1, 2.
    def plans(graph: Graph):
        return row(
            graph.plan("y: i/39, i/9, i/2, i"),
            lambda plan: plan.annotate("y", "i", "vectorize"),
            lambda plan: plan.annotate("y", "i/2", "unroll"),
            lambda plan: plan.annotate("y", "i/39", "parallel"),
            lambda plan: plan.merge("y", "i/9"),
        )

    keeps(device, "input x: i32[i=405]\noutput y = x * 3 + 1\n", plans)
    symbolic = "size N\ninput x: i32[i=N, j=3]\noutput y = x * 3 + 1\n"
    sizes = [{"N": 405}, {"N": 54}, {"N": 8}, {"N": 0}]
    keeps(
        device,
        symbolic,
        lambda graph: row(
            graph.plan("y: i/39, j, i/9, i/2, i"),
            lambda plan: plan.annotate("y", "i", "unroll"),
            lambda plan: plan.reorder("y", "i/39", "i/9", "i/2", "i", "j"),
        ),
        sizes,
    )


@on_every_device
def test_line_15_merge_undoes_split(device):
    plans = keeps(
        device,
        TABLE,
        lambda graph: row(
            graph.plan("y: i, j"),
            lambda plan: plan.split("y", "j", 4),
            lambda plan: plan.merge("y", "j/4"),
        ),
        TWO,
    )
    assert plans[0] != plans[1]
    assert plans[0] == plans[2]


@on_every_device
def test_line_16_packing(device):
    keeps(
        device,
        PRODUCT,
        lambda graph: row(
            graph.plan("c: j/8, i, k, j"),
            lambda plan: plan.copy("b", "c", "panel"),
            lambda plan: plan.layout("panel", "j/4", "k", "j"),
            lambda plan: plan.annotate("c", "j", "vectorize"),
            lambda plan: plan.compute("panel", "c", "i"),
            lambda plan: plan.remove("panel", "i"),
            lambda plan: plan.copy("a", "c", "row"),
            lambda plan: plan.compute("row", "c", "i"),
            lambda plan: plan.uncopy("panel"),
            lambda plan: plan.uncopy("row"),
        ),
        FOLDED,
    )
    keeps(
        device,
        WINDOW,
        lambda graph: row(
            graph.plan("y: o, j"),
            lambda plan: plan.pad("padded", "y", "wide"),
            "layout wide [j, wide_i]",
            "annotate y j vectorize",
        ),
        ONE,
    )


@on_every_device
def test_line_17_more_and_less_reuse(device):
    plans = keeps(
        device,
        CHAIN,
        lambda graph: row(
            graph.plan("h: i, j\ns: i, j\ny: i, j"),
            lambda plan: plan.unfuse("s"),
            lambda plan: plan.unfuse("y"),
            lambda plan: plan.fuse("s"),
            lambda plan: plan.inline("h"),
            lambda plan: plan.store("h"),
            lambda plan: plan.fuse("y"),
        ),
        ONE,
    )
    assert len({str(plan.tree) for plan in plans}) >= 5, "the trees differ"


@on_every_device
def test_line_18_steps_in_another_order(device):
    text = "size N\ninput x: i32[i=N]\na = x + 1\nb = x * 2\noutput y = a - b\noutput z = b + 1\n"
    plans = keeps(
        device,
        text,
        lambda graph: row(
            graph.plan("a: i\nb: i\ny: i\nz: i"),
            lambda plan: plan.move("b", before="a"),
            lambda plan: plan.move("z", before="y"),
            lambda plan: plan.move("a", after="z"),
        ),
        ONE,
    )
    assert plans[-1].steps == ["b", "z", "a", "y"]


def test_line_18_an_illegal_order_is_refused_with_the_dependence():
    plan = program("input x: i32[i=8]\na = x + 1\noutput y = a * a\n").plan("a: i\ny: i")
    with pytest.raises(RefusedChange) as caught:
        plan.move("y", before="a")
    assert (
        str(caught.value)
        == "`move y before a` is refused: `a` is computed after `y`, which reads it"
    )
    assert plan.steps == ["a", "y"], "the plan is as it was"


@on_every_device
def test_line_19_layout_of_an_intermediate(device):
    plans = keeps(
        device,
        TURNED,
        lambda graph: row(
            graph.plan("h: i, j\ny: share=0, i, j"),
            lambda plan: plan.layout("h", "j", "i"),
            lambda plan: plan.layout("h", "j/5", "i", "j/3", "j"),
            lambda plan: plan.layout("h", "j/4", "i", "j"),
            "split y j 4",
            "annotate y j vectorize",
            lambda plan: plan.layout("h"),
        ),
        ONE,
    )
    assert str(plans[0].tree) == str(plans[1].tree), "its layout only"


@on_every_device
def test_line_20_annotations(device):
    text = (
        "input A: f32[i=13, k=7]\ninput B: f32[k, j=19]\nC = sum[k](A * B)\nD = C + 1\noutput D\n"
    )
    schedules = [
        "C: i, j, k\nD: i, j",
        "C: i parallel, j, k\nD: i parallel, j",
        "C: i, j/8, k, j vectorize\nD: i, j/8, j vectorize",
        "C: i/4 parallel, i, j/16, k, j/4 unroll, j vectorize\nD: j parallel, i vectorize",
        "C: i/5, k/3 unroll, i unroll, j/6 vectorize, k, j vectorize\nD: i unroll, j unroll",
        "C: i unroll, k vectorize, j\nD: j/8 parallel, i, j",
    ]
    keeps(device, text, lambda graph: [graph.plan(schedule) for schedule in schedules])
    changes = [
        ("j", "unroll"),
        ("j", "vectorize"),
        ("i", "parallel"),
        ("j/8", "prefetch"),
        ("i", "block"),
        ("j/8", "thread"),
        ("j", "warp"),
        ("j", "tile"),
    ]

    def plans(graph: Graph):
        found = [graph.plan("y: i, j/8, j")]
        for name, annotation in changes:
            found.append(found[-1].annotate("y", name, annotation))
        return found

    keeps(device, TABLE, plans, TWO)


@on_every_device
def test_line_21_loops_added_and_removed(device):
    keeps(
        device,
        WEIGHTED,
        lambda graph: row(
            graph.plan("t: k\ny: i, k"),
            lambda plan: plan.add("t", "i"),
            lambda plan: plan.annotate("t", "i", "parallel"),
            lambda plan: plan.annotate("y", "i", "parallel"),
            lambda plan: plan.remove("t", "i"),
            lambda plan: plan.compute("t", "y", "k"),
            lambda plan: plan.annotate("y", "k", "unroll"),
        ),
        [{"N": 5, "K": 7}, {"N": 0, "K": 3}, {"N": 3, "K": 0}],
    )


@on_every_device
def test_line_22_reductions_in_stages(device):
    plans = keeps(
        device,
        FOLDS,
        lambda graph: row(
            graph.plan("s: i, k\nm: i, k\nfs: i, k\nfm: i, k"),
            lambda plan: plan.stage("s", "k", lanes=4, name="s4"),
            "annotate s4 s4_kept vectorize",
            lambda plan: plan.stage("m", "k", blocks=3, name="m3"),
            lambda plan: plan.stage("fs", "k", lanes=4, name="fs4"),
            lambda plan: plan.stage("fm", "k", blocks=2, name="fm2"),
        ),
        FOLDED,
    )
    # Integers may be folded in any order; floats say so, a maximum for the sake of its zeros.
    assert [plan.reassociates for plan in plans] == [False, False, False, False, True, True]
    keeps(
        device,
        "input x: i32[i=3, k=37]\noutput s = sum[k](x)\n",
        lambda graph: row(
            graph.plan("s: i, k"),
            lambda plan: plan.stage("s", "k", blocks=10, name="part"),
            lambda plan: plan.stage("part", "part_folded", lanes=4, name="lane"),
            "annotate lane lane_kept vectorize",
        ),
    )


def test_line_35_next_and_previous_visit_every_place_and_cursors_follow():
    plan = program(CHAIN.replace("size N", "size N = 8")).plan("h: i, j\ns: i, j\ny: i, j")
    cursor = plan.cursor()
    places = [cursor.place]
    while (after := cursor.next()) is not None:
        assert after.previous().place == cursor.place
        cursor = after
        places.append(cursor.place)
    assert places == plan.tree.walk()
    assert cursor.next() is None and plan.cursor().previous() is None

    # The loop over `j` was the second and is the third.
    at_j = plan.cursor("h", 1)
    assert at_j.place.name == "j"
    split = plan.split("h", "i", 4)
    followed = at_j.follow(split)
    assert (followed.step, followed.depth, followed.place.name) == ("h", 2, "j")
    # One that became inline has no place any more.
    assert plan.cursor("h").follow(plan.inline("h")) is None
    with pytest.raises(ValueError, match="one change at a time"):
        at_j.follow(split.split("h", "j", 2))


@on_every_device
def test_line_36_presets(device):
    def plans(graph: Graph):
        apart = graph.plan("h: share=0, j, i\ns: share=0, i, j\ny: share=0, i, j")
        inner = graph.plan("h: i, j/4, j\ns: i, j\ny: i, j")
        return [apart, apart.maximise_reuse(), inner, inner.unroll_inner()]

    apart, reused, _, _ = keeps(device, CHAIN, plans, ONE)
    assert str(reused.tree) == (
        "loopwright tree 1\nfor j {\n  for i {\n    h\n    s\n  }\n}\nfor i {\n  for j {\n    y\n  }\n}\n"
    )
    unrolled = program(CHAIN).plan("h: i, j\ns: i, j\ny: i, j").unroll_inner()
    assert (
        unrolled.schedule
        == "loopwright schedule 1\nh: i, j unroll\ns: i, j unroll\ny: i, j unroll\n"
    )


def test_every_change_has_a_method():
    for word in mutations():
        assert callable(getattr(Plan, word)), word
    assert len(mutations()) == 20


def test_changes_take_values_symbols_pairs_and_places():
    g = Graph()
    x = g.input("x", "f32", {"i": 64, "j": 8})
    y = (x * 2).named("y")
    g.output("y", y)
    plan = g.plan("y: i, j", target="interp")
    expected = plan.mutate("split y i 8").schedule
    from loopwright.loops import symbols

    assert plan.split(y, symbols("i"), 8).schedule == expected
    assert plan.split("y", plan.tree.roots[0], 8).schedule == expected
    twice = plan.split(y, "i", 8)
    assert twice.merge(y, ("i", 8)).schedule == plan.schedule
    with pytest.raises(ValueError, match="has no name"):
        plan.split(x * 3, "i", 8)


def test_names_that_are_no_words_are_quoted():
    g = Graph()
    x = g.input("x", "f32", {"some dim": 64})
    g.output("y", (x * 2).named("for"))
    plan = g.plan('"for": "some dim"', target="interp")
    assert (
        plan.split("for", "some dim", 8).schedule.splitlines()[1]
        == '"for": "some dim"/8, "some dim"'
    )


def test_what_is_refused_says_why():
    plan = program("input A: f32[i=16, k=8]\noutput C = sum[k](A)\n").plan("C: i, k")
    with pytest.raises(RefusedChange, match="each iteration needs the one before"):
        plan.annotate("C", "k", "parallel")
    with pytest.raises(RefusedChange, match="cannot be split by 1"):
        plan.split("C", "k", 1)
    with pytest.raises(TextError) as caught:
        plan.mutate("split C q 8")
    assert str(caught.value) == (
        "error: the program has no dimension `q`\n  --> change:1:9\n  |\n1 | split C q 8\n  |         ^"
    )
    with pytest.raises(RefusedSchedule, match="needs a last loop over `k` with step 1"):
        program("input A: f32[i=16, k=8]\noutput C = sum[k](A)\n").plan("C: i, k/2")
    with pytest.raises(TypeError, match="`before` another one or `after` it"):
        plan.move("C")


def test_the_legal_changes_are_accepted():
    plan = program(CHAIN.replace("size N", "size N = 8")).plan("h: i, j\ns: i, j\ny: i, j")
    legal = plan.legal()
    assert {line.split()[0] for line in legal} >= {"split", "swap", "unfuse", "annotate"}
    for line in legal:
        plan.mutate(line)


def test_a_change_for_all_that_share_the_loop():
    plan = program(CHAIN.replace("size N", "size N = 8")).plan("h: i, j\ns: i, j\ny: i, j")
    alone, together = plan.mutate("split h i 4"), plan.mutate("split h i 4", shared=True)
    assert len(alone.tree.roots) > len(together.tree.roots) == 1


def test_a_schedule_of_another_version_is_replayed():
    old = "sums: i/8, j, k, i\nC: i/8, i, j"
    new = program(
        "input A: f32[i=16, k=4]\ninput B: f32[k, j=8]\nproduct = sum[k](A * B)\noutput C = max(product, 0)\n"
    )
    with pytest.raises(TextError, match="no node `sums`"):
        new.plan(old)
    plan = new.plan(old, replay=True)
    assert plan.steps == ["product", "C"]
    assert any("left out: the program has no node `sums`" in note for note in plan.notes)


def test_plans_by_themselves_have_reasons():
    graph = program("input A: f32[i=64, k=32]\ninput B: f32[k, j=48]\noutput C = sum[k](A * B)\n")
    plan = graph.plan(target=DEVICES[0])
    why, loops = plan.reasons("C")
    assert why and len(loops) == len(plan.tree.find("C").loops)
    assert np.isfinite(plan.cost.seconds)
