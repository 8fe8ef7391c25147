//! SVG pictures.

use std::fmt::Write as _;

/// Colours that can be told apart on light and on dark, also by those who see few colours.
pub const COLOURS: [&str; 8] = [
    "#d55e00", "#e69f00", "#b8a000", "#009e73", "#cc79a7", "#8c6bb1", "#7f7f7f", "#a0522d",
];

/// The classes that every picture has: `back`, `title`, `quiet` and `grid`.
const STYLE: &str = "\
text { font: 12px system-ui, 'DejaVu Sans', sans-serif; fill: #1b1f24 }
.back { fill: #ffffff }
.title { font-size: 16px; font-weight: 600 }
.quiet { fill: #59636e }
.grid { stroke: #d8dee4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .back { fill: #0d1117 }
  .quiet { fill: #9198a1 }
  .grid { stroke: #30363d }
}
";

/// A picture that is being drawn, in light or dark as the viewer has it. All measures are in pixels at its natural size.
///
/// ```
/// let mut svg = loopwright_formats::chart::Svg::new(100.0, 50.0, "");
/// svg.text(50.0, 25.0, "title", "middle", "a < b");
/// assert!(svg.finish().contains(">a &lt; b</text>"));
/// ```
#[derive(Clone, Debug)]
pub struct Svg(String);

impl Svg {
    /// An empty picture. `style` is CSS for classes of its own.
    pub fn new(width: f64, height: f64, style: &str) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n{STYLE}{style}</style>\n\
             <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n"
        ))
    }

    /// A text in a class, at its `start`, `middle` or `end`.
    pub fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A straight line in a class.
    pub fn line(&mut self, x: f64, y: f64, to_x: f64, to_y: f64, class: &str) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" class=\"{class}\"/>"
        );
    }

    /// A rectangle that tells what it is where a pointer rests on it. `paint` is an attribute: a class or a fill.
    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, paint: &str, told: &str) {
        let told = escaped(told);
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {paint}>\
             <title>{told}</title></rect>"
        );
    }

    /// A curve in a colour, which tells what it is where a pointer rests on it; a single point is a dot.
    pub fn curve(&mut self, points: &[(f64, f64)], colour: &str, told: &str) {
        let told = escaped(told);
        if let [(x, y)] = points {
            let _ = writeln!(
                self.0,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\"><title>{told}</title></circle>"
            );
            return;
        }
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.0,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             stroke-linejoin=\"round\"><title>{told}</title></polyline>",
            points.join(" ")
        );
    }

    /// The text of the picture.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
