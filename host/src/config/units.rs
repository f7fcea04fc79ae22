//! Sizes and durations as people write them: `64MiB`, `30s`.

use serde::{Deserialize, Deserializer, de};
use std::fmt;

/// A size in bytes, written as a number or as text with a unit: `512`, `"64KiB"`, `"1MiB"`, `"2GiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A duration in milliseconds, written as text with a unit: `"500ms"`, `"30s"`, `"10m"`, `"1h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

const SIZE_UNITS: [(&str, u64); 5] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("kB", 1_000), ("B", 1)];
const SPAN_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Splits `64MiB` into its number and the factor of its unit; `None` where either is missing or the product overflows.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

impl Size {
    /// Reads a size, or says what a size looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        scaled(text, &SIZE_UNITS)
            .or_else(|| text.parse().ok())
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a size; write a number of bytes or, for example, \"64KiB\" or \"1MiB\""))
    }
}

impl Span {
    /// Reads a duration, or says what a duration looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        scaled(text, &SPAN_UNITS)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a duration; write, for example, \"500ms\", \"30s\" or \"10m\""))
    }

    /// The same as a standard duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = SIZE_UNITS[..3]
            .iter()
            .rev()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .copied()
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) =
            SPAN_UNITS.iter().rev().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor)).copied().unwrap_or(("ms", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

struct SizeVisitor;

impl de::Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 65536, \"64KiB\" or \"1MiB\"")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Size, E> {
        u64::try_from(value).map(Size).map_err(|_| E::custom("a size is never negative"))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Size, E> {
        Ok(Size(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        Size::parse(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(SizeVisitor)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_read_as_people_write_them() {
        for (text, bytes) in [("512", 512), ("1B", 1), ("64KiB", 65_536), ("1 MiB", 1 << 20), ("2GiB", 2 << 30), ("5kB", 5_000)] {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
        }
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(Span::parse(text), Ok(Span(ms)), "{text}");
        }
        for text in ["", "MiB", "12 parsecs", "-1", "99999999999GiB"] {
            assert!(Size::parse(text).is_err(), "{text}");
        }
        for text in ["", "30", "s", "1.5s", "99999999999999999h"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn they_are_written_with_the_largest_unit_that_is_exact() {
        for (size, text) in [(0, "0B"), (1_500, "1500B"), (65_536, "64KiB"), (1 << 30, "1GiB")] {
            assert_eq!(Size(size).to_string(), text);
        }
        for (span, text) in [(0, "0ms"), (1_500, "1500ms"), (30_000, "30s"), (3_600_000, "1h")] {
            assert_eq!(Span(span).to_string(), text);
        }
    }
}
