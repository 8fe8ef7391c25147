//! How graphs and plans show themselves in notebooks: pictures of a few plain shapes, with all text escaped.

use super::layout::{Arranged, arrange};
use super::plan::PyPlan;
use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_looptree::{Allocation, LoopTree, Storage, TreeNode, TreeRef, allocations};
use loopwright_ops::Scalar;
use loopwright_scheduler::Estimate;
use loopwright_symbolic::Expr;
use pyo3::PyResult;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// Letters of a label, at most; the rest is in its tooltip.
const LETTERS: usize = 38;

/// The width of a letter of 12 pixels in the fonts that notebooks have.
const LETTER: f64 = 7.3;

pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            letter if letter.is_control() && letter != '\n' => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn shown(graph: &Graph, expr: &Expr) -> String {
    expr.display(&|symbol| graph.symbol_name(symbol))
        .to_string()
}

/// Whether a node is written where it is read: a number, an index or a size.
fn is_word(graph: &Graph, node: NodeId) -> bool {
    let parts = graph.node(node);
    let output = graph.outputs().iter().any(|output| output.node == node);
    let word = match parts.op {
        NodeOp::Constant(_) => parts.dims.is_empty(),
        NodeOp::Index(_) | NodeOp::Size(_) => true,
        _ => false,
    };
    word && parts.name.is_empty() && !output
}

fn operand(graph: &Graph, node: NodeId) -> String {
    if !is_word(graph, node) {
        return graph.node_name(node);
    }
    match &graph.node(node).op {
        NodeOp::Constant(values) => values.first().map_or_else(String::new, Scalar::to_string),
        NodeOp::Index(dim) => graph.dim(*dim).name.clone(),
        NodeOp::Size(size) => shown(graph, size),
        _ => graph.node_name(node),
    }
}

/// What a node computes, about as in a program's text.
pub(super) fn formula(graph: &Graph, node: NodeId) -> String {
    let parts = graph.node(node);
    let operands: Vec<String> = parts
        .inputs
        .iter()
        .map(|input| operand(graph, *input))
        .collect();
    let all = operands.join(", ");
    let dim = |dim: &loopwright_graph::DimId| graph.dim(*dim).name.clone();
    match &parts.op {
        NodeOp::Input => "input".to_owned(),
        NodeOp::State => "state".to_owned(),
        NodeOp::Constant(values) => match values.len() {
            1 => values[0].to_string(),
            count => format!("{count} constants"),
        },
        NodeOp::Index(along) => format!("index[{}]", dim(along)),
        NodeOp::Size(size) => shown(graph, size),
        NodeOp::Map(op) => {
            let sign = match op.name() {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "div" => "/",
                "lt" => "<",
                "le" => "<=",
                "gt" => ">",
                "ge" => ">=",
                "eq" => "==",
                "ne" => "!=",
                _ => "",
            };
            match (sign, operands.as_slice()) {
                ("", _) => format!("{op}({all})"),
                (sign, [a, b]) => format!("{a} {sign} {b}"),
                (_, _) => format!("{op}({all})"),
            }
        }
        NodeOp::Cast => format!("{}({all})", parts.dtype),
        NodeOp::Bitcast => format!("bitcast[{}]({all})", parts.dtype),
        NodeOp::Reduce { op, over, .. } => {
            let over: Vec<String> = over.iter().map(dim).collect();
            format!("{op}[{}]({all})", over.join(", "))
        }
        NodeOp::ArgReduce { largest, over } => {
            let name = if *largest { "argmax" } else { "argmin" };
            format!("{name}[{}]({all})", dim(over))
        }
        NodeOp::Scan { op, over, .. } => format!("scan_{op}[{}]({all})", dim(over)),
        NodeOp::Previous { of, over, outside } => {
            format!(
                "previous[{}]({}) else {outside}",
                dim(over),
                graph.node_name(*of)
            )
        }
        NodeOp::View(view) => {
            let index: Vec<String> = view.map.iter().map(|index| shown(graph, index)).collect();
            let conditions: Vec<String> = view
                .constraints
                .iter()
                .map(|when| shown(graph, when))
                .collect();
            let mut text = format!("{all}[{}]", index.join(", "));
            if !conditions.is_empty() {
                let _ = write!(text, " if {}", conditions.join(", "));
            }
            if let Some(outside) = view.outside {
                let _ = write!(text, " else {outside}");
            }
            text
        }
        NodeOp::Gather { axis, .. } => format!("gather[{}]({all})", dim(axis)),
        NodeOp::Scatter { axis, .. } => format!("scatter[{}]({all})", dim(axis)),
        NodeOp::Sort { over, .. } => format!("sort[{}]({all})", dim(over)),
        NodeOp::ArgSort { over, .. } => format!("argsort[{}]({all})", dim(over)),
    }
}

/// The shape of a node: `f32[i=64, k=32]`.
fn type_text(graph: &Graph, node: NodeId) -> String {
    let parts = graph.node(node);
    let dims: Vec<String> = parts
        .dims
        .iter()
        .map(|dim| {
            format!(
                "{}={}",
                graph.dim(*dim).name,
                shown(graph, &graph.dim(*dim).size)
            )
        })
        .collect();
    format!("{}[{}]", parts.dtype, dims.join(", "))
}

/// The colours of a node's box: inside and border.
fn colours(op: &NodeOp) -> (&'static str, &'static str) {
    match op {
        NodeOp::Input => ("#dbeafe", "#3b6fb5"),
        NodeOp::State => ("#ede9fe", "#6d5bb0"),
        NodeOp::Constant(_) | NodeOp::Index(_) | NodeOp::Size(_) => ("#f1f5f9", "#64748b"),
        NodeOp::Reduce { .. } | NodeOp::ArgReduce { .. } | NodeOp::Scan { .. } => {
            ("#ffedd5", "#b9651b")
        }
        NodeOp::Previous { .. } | NodeOp::View(_) => ("#dcfce7", "#3c8a58"),
        NodeOp::Gather { .. }
        | NodeOp::Scatter { .. }
        | NodeOp::Sort { .. }
        | NodeOp::ArgSort { .. } => ("#fce7f3", "#a8467d"),
        NodeOp::Map(_) | NodeOp::Cast | NodeOp::Bitcast => ("#ffffff", "#475569"),
    }
}

/// A box of a graph's picture.
struct Shape {
    lines: Vec<String>,
    tooltip: String,
    inside: &'static str,
    border: &'static str,
    round: bool,
}

impl Shape {
    fn size(&self) -> (f64, f64) {
        let letters = self
            .lines
            .iter()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        (
            letters as f64 * LETTER + 20.0,
            self.lines.len() as f64 * 16.0 + 12.0,
        )
    }
}

/// A picture of a graph: a box for each node, below what it reads.
pub(super) fn graph_svg(graph: &Graph) -> String {
    let mut shapes = Vec::new();
    let mut edges = Vec::new();
    let mut places: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in graph.node_ids().filter(|node| !is_word(graph, *node)) {
        let parts = graph.node(node);
        let formula = formula(graph, node);
        let name = graph.node_name(node);
        let given = matches!(parts.op, NodeOp::Input | NodeOp::State);
        let first = match given {
            true => format!("{formula} {name}"),
            false => format!("{name} = {formula}"),
        };
        let (inside, border) = colours(&parts.op);
        let kind = type_text(graph, node);
        places.insert(node, shapes.len());
        shapes.push(Shape {
            tooltip: format!("{first}\n{kind}"),
            lines: vec![shortened(&first), shortened(&kind)],
            inside,
            border,
            round: false,
        });
    }
    for (node, at) in &places {
        for input in &graph.node(*node).inputs {
            if let Some(from) = places.get(input) {
                edges.push((*from, *at));
            }
        }
    }
    let outputs = graph
        .outputs()
        .iter()
        .map(|output| (format!("output {}", output.name), output.node));
    let updates = graph.updates().iter().map(|update| {
        (
            format!("update {}", graph.node_name(update.state)),
            update.value,
        )
    });
    for (label, node) in outputs.chain(updates) {
        if let Some(from) = places.get(&node) {
            edges.push((*from, shapes.len()));
            shapes.push(Shape {
                tooltip: label.clone(),
                lines: vec![shortened(&label)],
                inside: "#1e293b",
                border: "#1e293b",
                round: true,
            });
        }
    }
    edges.sort_unstable();
    edges.dedup();
    let sizes: Vec<(f64, f64)> = shapes.iter().map(Shape::size).collect();
    let Arranged {
        centres,
        routes,
        width,
        height,
    } = arrange(&sizes, &edges);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" style=\"max-width:100%;height:auto;background:#fff\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"12\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
    );
    for route in &routes {
        let _ = write!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"#94a3b8\" stroke-width=\"1.4\"/>",
            curve(route)
        );
        if let Some((x, y)) = route.last() {
            let _ = write!(
                svg,
                "<path d=\"M{x:.1},{y:.1} l-4,-7 h8 z\" fill=\"#94a3b8\"/>",
            );
        }
    }
    for (shape, ((x, y), (wide, high))) in shapes.iter().zip(centres.iter().zip(&sizes)) {
        let radius = if shape.round { high / 2.0 } else { 5.0 };
        let _ = write!(
            svg,
            "<g><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
             rx=\"{radius:.1}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.2\"/>",
            escaped(&shape.tooltip),
            x - wide / 2.0,
            y - high / 2.0,
            shape.inside,
            shape.border,
        );
        for (at, line) in shape.lines.iter().enumerate() {
            let colour = match (shape.round, at) {
                (true, _) => "#ffffff",
                (false, 0) => "#0f172a",
                (false, _) => "#64748b",
            };
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{colour}\">{}</text>",
                y - high / 2.0 + 18.0 + at as f64 * 16.0,
                escaped(line),
            );
        }
        svg += "</g>";
    }
    svg += "</svg>";
    svg
}

/// A smooth line from point to point, leaving and arriving upright.
fn curve(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        if at == 0 {
            let _ = write!(path, "M{x:.1},{y:.1}");
            continue;
        }
        let (from_x, from_y) = points[at - 1];
        let middle = (from_y + y) / 2.0;
        let _ = write!(
            path,
            " C{from_x:.1},{middle:.1} {x:.1},{middle:.1} {x:.1},{y:.1}"
        );
    }
    path
}

/// A plan: its loops inside each other, with a bar for the share of each part in what the cost model expects.
pub(super) fn plan_html(plan: &PyPlan) -> PyResult<String> {
    let (graph, tree) = (plan.plan.graph(), plan.plan.tree());
    let estimate = plan.estimated(None)?;
    let held = allocations(graph, plan.plan.schedule(), tree).map_err(super::errors::schedule)?;
    let page = Page {
        graph,
        tree,
        estimate: &estimate,
        held: &held,
    };
    let mut html = format!(
        "<div style=\"font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;color:#0f172a;\
         background:#fff;padding:8px;line-height:1.5;max-width:70em;overflow-x:auto\">\
         <div style=\"color:#64748b;margin-bottom:4px\">{} steps for {}, about {} by the cost model</div>",
        plan.plan.schedule().steps.len(),
        escaped(&plan.target.device),
        duration(estimate.seconds),
    );
    for edit in plan.plan.to_string().lines().skip(1) {
        if ["copy ", "pad ", "stage "]
            .iter()
            .any(|word| edit.starts_with(word))
        {
            let _ = write!(html, "<div style=\"color:#64748b\">{}</div>", escaped(edit));
        }
    }
    for root in tree.roots() {
        page.place(*root, &mut html);
    }
    html += "</div>";
    Ok(html)
}

struct Page<'a> {
    graph: &'a Graph,
    tree: &'a LoopTree,
    estimate: &'a Estimate,
    held: &'a FxHashMap<NodeId, Allocation>,
}

impl Page<'_> {
    /// What the steps at or below a place take.
    fn seconds(&self, place: TreeRef) -> f64 {
        let leaves = self.tree.leaves(place);
        let steps = leaves.iter().filter_map(|node| self.estimate.step(*node));
        steps.map(|step| step.seconds).sum()
    }

    fn place(&self, place: TreeRef, html: &mut String) {
        let seconds = self.seconds(place);
        let share = match self.estimate.seconds > 0.0 {
            true => (seconds / self.estimate.seconds * 100.0).clamp(0.0, 100.0),
            false => 0.0,
        };
        let (title, label, colour) = match self.tree.node(place) {
            TreeNode::Loop { .. } => (String::new(), self.loop_label(place), "#93c5fd"),
            TreeNode::Leaf(node) => (self.reason(*node), self.step_label(*node), "#fdba74"),
        };
        let _ = write!(
            html,
            "<div style=\"display:flex;white-space:nowrap\" title=\"{}\"><span style=\"flex:1 0 auto\">{label}</span>\
             <span style=\"flex:0 0 150px;margin-left:1em;align-self:center;background:#f1f5f9;height:9px;border-radius:2px\">\
             <span style=\"display:block;width:{share:.1}%;height:9px;background:{colour};border-radius:2px\"></span></span>\
             <span style=\"flex:0 0 5.5em;text-align:right;color:#475569\">{}</span>\
             <span style=\"flex:0 0 4em;text-align:right;color:#94a3b8\">{share:.0} %</span></div>",
            escaped(&title),
            duration(seconds),
        );
        let children = self.tree.children(place);
        if !children.is_empty() {
            *html +=
                "<div style=\"margin-left:7px;border-left:1px solid #cbd5e1;padding-left:11px\">";
            for child in children {
                self.place(*child, html);
            }
            *html += "</div>";
        }
    }

    fn reason(&self, node: NodeId) -> String {
        let step = self.estimate.step(node);
        step.map_or_else(String::new, |step| step.reason(self.graph))
    }

    fn loop_label(&self, place: TreeRef) -> String {
        let Some(spec) = self.tree.spec(place) else {
            return String::new();
        };
        let mut label = format!(
            "<span style=\"color:#64748b\">for</span> <b>{}</b>",
            escaped(&self.graph.dim(spec.dim).name)
        );
        if spec.step > 1 {
            let _ = write!(label, "<b>/{}</b>", spec.step);
        }
        let (inside, text) = match spec.annotation.name() {
            "serial" => ("", ""),
            "parallel" => ("#dcfce7", "#166534"),
            "vectorize" => ("#ede9fe", "#5b21b6"),
            "unroll" => ("#fef3c7", "#92400e"),
            _ => ("#e2e8f0", "#334155"),
        };
        if !inside.is_empty() {
            let _ = write!(
                label,
                " <span style=\"background:{inside};color:{text};border-radius:3px;padding:0 4px\">{}</span>",
                spec.annotation.name()
            );
        }
        let around = self.tree.ancestors(place);
        let outer = around
            .iter()
            .rev()
            .filter_map(|above| self.tree.spec(*above));
        let outer = outer
            .filter(|above| above.dim == spec.dim)
            .map(|above| above.step)
            .next();
        let size = &self.graph.dim(spec.dim).size;
        let rounds = match outer.or_else(|| size.as_const()) {
            Some(covered) => {
                let rounds = covered / spec.step + i64::from(covered % spec.step > 0);
                match (covered % spec.step, rounds) {
                    (0, rounds) => format!("{rounds}×"),
                    (rest, 1) => format!("1×, {rest} of {}", spec.step),
                    (_, rounds) => format!("{rounds}×, the last shorter"),
                }
            }
            None => format!("{} in steps of {}", shown(self.graph, size), spec.step),
        };
        let _ = write!(
            label,
            " <span style=\"color:#94a3b8\">{}</span>",
            escaped(&rounds)
        );
        if let Some(delegate) = self.tree.delegate(place)
            && around.is_empty()
        {
            let _ = write!(
                label,
                " <span style=\"color:#b91c1c\">on {}</span>",
                escaped(delegate)
            );
        }
        label
    }

    fn step_label(&self, node: NodeId) -> String {
        let formula = formula(self.graph, node);
        let kept = self
            .held
            .get(&node)
            .map_or_else(String::new, |held| self.kept(held));
        format!(
            "<b>{}</b> = {} <span style=\"color:#94a3b8\">{}{}</span>",
            escaped(&self.graph.node_name(node)),
            escaped(&shortened(&formula)),
            escaped(&self.graph.node(node).dtype.to_string()),
            escaped(&kept),
        )
    }

    /// Where a result is kept.
    fn kept(&self, held: &Allocation) -> String {
        let place = match held.storage {
            Storage::Output(at) => {
                let output = self.graph.outputs().get(at as usize);
                format!(
                    "output {}",
                    output.map_or("", |output| output.name.as_str())
                )
            }
            Storage::State(state) => format!("state {}", self.graph.node_name(state)),
            Storage::Private => "private".to_owned(),
            Storage::Scratch => "scratch".to_owned(),
        };
        let amount = match held.elements() {
            Ok(elements) => match elements.as_const() {
                Some(count) => bytes(count.max(0) as f64 * held.dtype.bytes() as f64),
                None => format!("{} elements", shown(self.graph, &elements)),
            },
            Err(_) => String::new(),
        };
        format!(" → {place}, {amount}")
    }
}

fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        seconds if seconds >= 1.0 => (seconds, "s"),
        seconds if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        seconds if seconds >= 1e-6 => (seconds * 1e6, "µs"),
        seconds => (seconds * 1e9, "ns"),
    };
    format!("{value:.*} {unit}", if value >= 100.0 { 0 } else { 1 })
}

fn bytes(count: f64) -> String {
    let (value, unit) = match count {
        count if count >= 1024.0 * 1024.0 => (count / (1024.0 * 1024.0), "MiB"),
        count if count >= 1024.0 => (count / 1024.0, "KiB"),
        count => (count, "B"),
    };
    let digits = usize::from(value.fract() > 0.0);
    format!("{value:.digits$} {unit}")
}
