//! Fuzz targets of the protocol and of those parts of the host that read what clients and guests send.

pub mod checks;
pub mod host;
