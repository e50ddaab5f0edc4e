//! A measurement and what it must be.

use std::{fs, path::Path};

use anyhow::Context;
use serde::Serialize;

/// What a measurement is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// It may be no more than this.
    AtMost(f64),
    /// It may be no less than this.
    AtLeast(f64),
    /// It is shown, and means nothing by itself.
    None,
}

/// Something measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured.
    pub figure: &'static str,
    /// The measurement.
    pub value: f64,
    /// What it counts.
    pub unit: &'static str,
    /// What it must be.
    pub must: Limit,
    /// Whether it is.
    pub met: bool,
}

impl Figure {
    /// Holds a measurement against its limit.
    #[must_use]
    pub fn new(figure: &'static str, value: f64, unit: &'static str, must: Limit) -> Self {
        let met = match must {
            Limit::AtMost(most) => value <= most,
            Limit::AtLeast(least) => value >= least,
            Limit::None => true,
        };
        Self {
            figure,
            value,
            unit,
            must,
            met,
        }
    }
}

impl Limit {
    /// As people write it.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::AtMost(most) => format!("<= {most}"),
            Self::AtLeast(least) => format!(">= {least}"),
            Self::None => String::new(),
        }
    }
}

/// Shows figures as a table, and writes them to `file` as JSON.
///
/// # Errors
/// When the file cannot be written.
pub fn report(figures: &[Figure], file: &Path) -> anyhow::Result<()> {
    show(figures);
    let text = serde_json::to_string_pretty(figures)? + "\n";
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn show(figures: &[Figure]) {
    let longest = figures.iter().map(|each| each.figure.len()).max();
    let width = longest.unwrap_or_default();
    println!("{:<width$} {:>12} {:>12}  unit", "figure", "value", "must");
    for figure in figures {
        let missed = if figure.met { "" } else { "  NOT MET" };
        println!(
            "{:<width$} {:>12.2} {:>12}  {}{missed}",
            figure.figure,
            figure.value,
            figure.must.shown(),
            figure.unit
        );
    }
}
