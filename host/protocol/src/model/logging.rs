//! Log levels, as `logging/setLevel` and the modern `_meta` name them.

use std::str::FromStr;

/// How severe a log message is (RFC 5424), mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// For whoever hunts a bug.
    Debug,
    /// As planned.
    Info,
    /// As planned, but worth a look.
    Notice,
    /// May become trouble.
    Warning,
    /// Something failed.
    Error,
    /// Something important failed.
    Critical,
    /// Act now.
    Alert,
    /// Nothing works.
    Emergency,
}

/// The text is none of the eight levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLevel;

impl LogLevel {
    /// All of them, mildest first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The level as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<LogLevel, UnknownLevel> {
        LogLevel::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownLevel)
    }
}
