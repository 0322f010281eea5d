//! The figures as a picture: each from its least to its greatest value, on a scale on which its goal is 1.

use std::fmt::Write as _;

use crate::figure::{Figure, Summary};

const WIDTH: f64 = 900.0;
const ROW: f64 = 44.0;
const LEFT: f64 = 120.0;
/// Where the goal is; what is at most 1.5 times the goal is shown in its place, more at the edge.
const GOAL: f64 = LEFT + 480.0;
const EDGE: f64 = LEFT + 720.0;

/// An SVG with one row for each figure.
pub(crate) fn svg(figures: &[Figure]) -> String {
    let height = 40.0 + ROW * figures.len() as f64;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <line x1=\"{GOAL}\" x2=\"{GOAL}\" y1=\"26\" y2=\"{height}\" stroke=\"#888\" stroke-dasharray=\"4 3\"/>\n\
         <text x=\"{GOAL}\" y=\"18\" text-anchor=\"middle\" fill=\"#555\">goal</text>\n"
    );
    for (row, figure) in figures.iter().enumerate() {
        picture.push_str(&bar(figure, 40.0 + ROW * row as f64));
    }
    picture.push_str("</svg>\n");
    picture
}

/// A row: a bar from the least to the greatest value, a mark at the median, the median in words.
fn bar(figure: &Figure, top: f64) -> String {
    let Summary { min, median, max } = figure.summary();
    let place = |value: f64| (LEFT + value / figure.goal * (GOAL - LEFT)).clamp(LEFT, EDGE);
    let (from, middle, to) = (place(min), place(median), place(max));
    let colour = if figure.met() { "#2a7a4b" } else { "#b3372f" };
    let (width, beside, baseline, below) = ((to - from).max(1.0), LEFT - 12.0, top + 14.0, top + 32.0);
    let mut row = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(
        row,
        "<text x=\"{beside}\" y=\"{baseline}\" text-anchor=\"end\">{id}</text>\n\
         <rect x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\" fill-opacity=\"0.3\"/>\n\
         <rect x=\"{middle:.1}\" y=\"{top}\" width=\"3\" height=\"18\" fill=\"{colour}\"/>\n\
         <text x=\"{LEFT}\" y=\"{below}\" fill=\"#555\">{median:.2} {unit} (at most {goal} {unit}): {what}</text>",
        id = figure.id,
        unit = figure.unit,
        goal = figure.goal,
        what = figure.what.replace('&', "&amp;").replace('<', "&lt;"),
    );
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Judged;

    #[test]
    fn a_figure_at_half_of_its_goal_is_drawn_halfway_to_the_line() {
        let figure = Figure {
            id: "b0",
            what: "a < b",
            unit: "ms",
            values: vec![0.0, 25.0, 1000.0],
            goal: 50.0,
            judged: Judged::Median,
            sides: Vec::new(),
        };
        let drawn = svg(&[figure]);
        assert!(drawn.contains("<rect x=\"120.0\" y=\"40\" width=\"720.0\""), "{drawn}");
        assert!(drawn.contains("<rect x=\"360.0\" y=\"40\" width=\"3\""), "{drawn}");
        assert!(drawn.contains(">25.00 ms (at most 50 ms): a &lt; b</text>"), "{drawn}");
        assert_eq!(drawn.matches("</text>").count(), 3);
    }
}
