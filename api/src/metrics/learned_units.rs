//! Learned units: what the calibration of compute units shows, of all swaps and by shape.

use std::{collections::BTreeMap, sync::atomic::AtomicU64};

use cpmm::FixedAmount;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use sluice_transaction::{
    compute_table::TokenKind,
    compute_units::{Learned, LearnedShape, Ratio},
};

/// What was learned of the exchange's compute units.
#[derive(Debug, Default)]
pub(super) struct LearnedUnits {
    ratio: Gauge<f64, AtomicU64>,
    samples: Gauge,
    /// Told anew with each text: those that an upgrade has voided are gone.
    shapes: Mutex<Vec<LearnedShape>>,
    pub(super) short: Counter,
}

/// The tokens of a swap and which amount is fixed. Extensions are no part of it: mints that anybody makes would make labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ShapeLabel {
    fixed: &'static str,
    input: &'static str,
    output: &'static str,
}

type Ratios = Family<ShapeLabel, Gauge<f64, AtomicU64>>;
type Samples = Family<ShapeLabel, Gauge>;

impl From<&LearnedShape> for ShapeLabel {
    fn from(shape: &LearnedShape) -> Self {
        Self {
            fixed: match shape.fixed {
                FixedAmount::In => "in",
                FixedAmount::Out => "out",
            },
            input: name(shape.input),
            output: name(shape.output),
        }
    }
}

const fn name(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Spl => "spl",
        TokenKind::Token2022 => "token2022",
        TokenKind::Token2022WithFee => "token2022WithFee",
    }
}

impl LearnedUnits {
    pub(super) fn show(&self, learned: Learned) {
        let (ratio, samples) = learned.overall;
        self.ratio.set(thousandths(ratio));
        self.samples.set(samples.into());
        *self.shapes.lock() = learned.shapes;
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "learned_units_ratio",
            "Compute units of the exchange's swaps over those of its profile, of all shapes together",
            self.ratio.clone(),
        );
        registry.register(
            "learned_units_samples",
            "Swaps of the confirmed chain that showed it, since the exchange's last upgrade",
            self.samples.clone(),
        );
        let (ratios, samples) = self.by_shape();
        registry.register(
            "learned_units_shape_ratio",
            "The same of swaps of one shape, the dearest by the number of their mints' extensions",
            ratios,
        );
        registry.register(
            "learned_units_shape_samples",
            "Swaps of the confirmed chain of that shape, since the exchange's last upgrade",
            samples,
        );
        registry.register(
            "learned_units_short",
            "Swaps of the confirmed chain that used more than a limit of the moment before would have allowed, and those sent here that ran out",
            self.short.clone(),
        );
    }

    fn by_shape(&self) -> (Ratios, Samples) {
        let mut shapes = BTreeMap::<ShapeLabel, (Ratio, i64)>::new();
        for shape in self.shapes.lock().iter() {
            let (ratio, samples) = shapes.entry(shape.into()).or_default();
            *ratio = shape.ratio.max(*ratio);
            *samples = samples.saturating_add(shape.samples.into());
        }
        let (ratios, counts) = (Ratios::default(), Samples::default());
        for (label, (ratio, samples)) in shapes {
            ratios.get_or_create(&label).set(thousandths(ratio));
            counts.get_or_create(&label).set(samples);
        }
        (ratios, counts)
    }
}

fn thousandths(ratio: Ratio) -> f64 {
    f64::from(ratio.0) / 1_000.0
}
