//! Kept units: what was learned, as the database keeps it for the next process.

use cpmm::FixedAmount;
use serde::{Deserialize, Serialize};
use sluice_transaction::{
    compute_table::TokenKind,
    compute_units::{Learned, LearnedShape, Profile, Ratio},
};

/// What was learned, beside the profile that it was held against: over another one its ratios say nothing.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    profile: String,
    deployment_slot: Option<u64>,
    start: u32,
    overall: (u32, u32),
    shapes: Vec<KeptShape>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptShape {
    exact_out: bool,
    input: KeptKind,
    output: KeptKind,
    extensions: u16,
    ratio: u32,
    samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KeptKind {
    Spl,
    Token2022,
    Token2022WithFee,
}

impl Kept {
    pub(super) fn new(profile: &Profile, learned: &Learned) -> Self {
        Self {
            profile: name(profile),
            deployment_slot: learned.deployment_slot,
            start: learned.start.0,
            overall: (learned.overall.0.0, learned.overall.1),
            shapes: learned.shapes.iter().map(KeptShape::from).collect(),
        }
    }

    /// What was learned over `profile`; `None` where it was another.
    pub(super) fn learned(&self, profile: &Profile) -> Option<Learned> {
        (self.profile == name(profile)).then(|| Learned {
            deployment_slot: self.deployment_slot,
            start: Ratio(self.start),
            overall: (Ratio(self.overall.0), self.overall.1),
            shapes: self.shapes.iter().map(LearnedShape::from).collect(),
        })
    }
}

/// All constants of the profile, as text: a release that corrects one has another profile.
fn name(profile: &Profile) -> String {
    format!("{profile:?}")
}

impl From<&LearnedShape> for KeptShape {
    fn from(shape: &LearnedShape) -> Self {
        Self {
            exact_out: shape.fixed == FixedAmount::Out,
            input: shape.input.into(),
            output: shape.output.into(),
            extensions: shape.extensions,
            ratio: shape.ratio.0,
            samples: shape.samples,
        }
    }
}

impl From<&KeptShape> for LearnedShape {
    fn from(shape: &KeptShape) -> Self {
        Self {
            fixed: if shape.exact_out {
                FixedAmount::Out
            } else {
                FixedAmount::In
            },
            input: shape.input.into(),
            output: shape.output.into(),
            extensions: shape.extensions,
            ratio: Ratio(shape.ratio),
            samples: shape.samples,
        }
    }
}

impl From<TokenKind> for KeptKind {
    fn from(kind: TokenKind) -> Self {
        match kind {
            TokenKind::Spl => Self::Spl,
            TokenKind::Token2022 => Self::Token2022,
            TokenKind::Token2022WithFee => Self::Token2022WithFee,
        }
    }
}

impl From<KeptKind> for TokenKind {
    fn from(kind: KeptKind) -> Self {
        match kind {
            KeptKind::Spl => Self::Spl,
            KeptKind::Token2022 => Self::Token2022,
            KeptKind::Token2022WithFee => Self::Token2022WithFee,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_the_same_after_it_was_kept_unless_the_profile_is_another() {
        let shape = |fixed, input, output| LearnedShape {
            fixed,
            input,
            output,
            extensions: 3,
            ratio: Ratio(1_020),
            samples: 40,
        };
        let learned = Learned {
            deployment_slot: Some(7),
            start: Ratio(1_050),
            overall: (Ratio(1_010), 90),
            shapes: vec![
                shape(FixedAmount::In, TokenKind::Spl, TokenKind::Token2022),
                shape(
                    FixedAmount::Out,
                    TokenKind::Token2022WithFee,
                    TokenKind::Spl,
                ),
            ],
        };
        let kept = serde_json::to_string(&Kept::new(&Profile::MAINNET, &learned)).expect("JSON");
        let read: Kept = serde_json::from_str(&kept).expect("the same");
        assert_eq!(read.learned(&Profile::MAINNET), Some(learned));
        assert_eq!(read.learned(&Profile::STAND_IN), None);
    }
}
