//! Builds JavaScript projects.

use super::{BuildContext, Built, Project};

/// Builds a JavaScript project.
pub(super) fn build(_project: &Project, _ctx: &mut BuildContext) -> anyhow::Result<Built> {
    anyhow::bail!("JavaScript projects cannot be built yet")
}
