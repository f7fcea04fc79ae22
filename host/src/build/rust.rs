//! Builds Rust projects.

use super::{BuildContext, Built, Project};

/// Builds a Rust project.
pub(super) fn build(_project: &Project, _ctx: &mut BuildContext) -> anyhow::Result<Built> {
    anyhow::bail!("not written yet")
}
