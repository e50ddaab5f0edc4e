//! Figures of benchmarks: value, unit, limit and whether it is met; shown as a table, written as JSON.

use std::{fs, path::Path};

use anyhow::Context;
use serde::Serialize;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// The same on every machine.
    Exact(u64),
    /// What this machine gave.
    Measured(f64),
}

impl Quantity {
    /// As people write it.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::Exact(value) => value.to_string(),
            Self::Measured(value) => format!("{value:.2}"),
        }
    }
}

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
    /// An exact figure may be no more than this. Written as a bare number.
    #[serde(untagged)]
    Budget(u64),
}

/// Something measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured.
    pub figure: &'static str,
    /// The measurement.
    pub value: Quantity,
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
            // Beyond 2^53 it would round; no figure is near.
            #[expect(clippy::cast_precision_loss, reason = "budgets are far below 2^53")]
            Limit::Budget(most) => value <= most as f64,
        };
        Self {
            figure,
            value: Quantity::Measured(value),
            unit,
            must,
            met,
        }
    }

    /// Holds an exact figure against the most that it may be.
    #[must_use]
    pub fn exact(figure: &'static str, value: u64, unit: &'static str, most: u64) -> Self {
        Self {
            figure,
            value: Quantity::Exact(value),
            unit,
            must: Limit::Budget(most),
            met: value <= most,
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
            Self::Budget(most) => format!("<= {most}"),
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
            "{:<width$} {:>12} {:>12}  {}{missed}",
            figure.figure,
            figure.value.shown(),
            figure.must.shown(),
            figure.unit
        );
    }
}
