//! Builds Go projects.

use super::{BuildContext, Built, Project};

/// Builds a Go project.
pub(super) fn build(_project: &Project, _ctx: &mut BuildContext) -> anyhow::Result<Built> {
    anyhow::bail!("Go projects cannot be built yet")
}
