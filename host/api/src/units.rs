//! Durations and sizes as manifests write them: always with a unit.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

const DURATION_UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// A duration such as `250ms`, `60s`, `10m`, `24h`. Whole numbers with one unit; no sign, no fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(pub Duration);

/// A number of bytes such as `64KiB`, `256MiB`, `1GiB` (or `KB`, `MB`, `GB` in powers of ten, `B`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// A text that is not a number with one of the units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity(String);

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAQuantity {}

fn quantity(text: &str, units: &[(&str, u64)], example: &str) -> Result<u64, NotAQuantity> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let value = number
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor));
    value.ok_or_else(|| {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        NotAQuantity(format!(
            "expected a whole number with a unit ({}), such as `{example}`",
            names.join(", ")
        ))
    })
}

fn pattern(units: &[(&str, u64)]) -> String {
    let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    format!("^[0-9]+({})$", names.join("|"))
}

impl HumanDuration {
    /// The JSON Schema of such a value.
    pub fn schema() -> Value {
        json!({"type": "string", "pattern": pattern(DURATION_UNITS), "examples": ["60s", "10m"]})
    }
}

impl ByteSize {
    /// The JSON Schema of such a value.
    pub fn schema() -> Value {
        json!({"type": "string", "pattern": pattern(SIZE_UNITS), "examples": ["1MiB", "256MiB"]})
    }
}

impl FromStr for HumanDuration {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        quantity(text, DURATION_UNITS, "60s").map(|ms| Self(Duration::from_millis(ms)))
    }
}

impl FromStr for ByteSize {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        quantity(text, SIZE_UNITS, "256MiB").map(Self)
    }
}

fn largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let fits = units
        .iter()
        .filter(|(_, factor)| value.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor);
    fits.map_or_else(
        || value.to_string(),
        |(name, factor)| format!("{}{name}", value / factor),
    )
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        f.write_str(&if ms == 0 {
            "0ms".to_owned()
        } else {
            largest_unit(ms, DURATION_UNITS)
        })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0 == 0 {
            "0B".to_owned()
        } else {
            largest_unit(self.0, &SIZE_UNITS[..4])
        })
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(de::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

serde_as_text!(HumanDuration);
serde_as_text!(ByteSize);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_required_and_known() {
        assert_eq!("90s".parse(), Ok(HumanDuration(Duration::from_secs(90))));
        assert_eq!("256MiB".parse(), Ok(ByteSize(256 << 20)));
        for wrong in [
            "",
            "60",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "10mins",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            let error = wrong.parse::<HumanDuration>().unwrap_err().to_string();
            assert_eq!(
                error, "expected a whole number with a unit (ms, s, m, h, d), such as `60s`",
                "{wrong:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_as_the_same(ms in 0..u64::MAX / 1_000, bytes: u64) {
            let duration = HumanDuration(Duration::from_millis(ms));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn any_text_is_a_value_or_an_error(text: String) {
            let _ = text.parse::<HumanDuration>();
            let _ = text.parse::<ByteSize>();
        }
    }
}
