//! What a guest finds in its room: everything that its operator granted, ready to be used by its calls.

use crate::audit::Audit;

/// What is granted to one guest. The default room is empty.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Where uses and refusals are noted.
    pub audit: Audit,
}
