//! What a guest finds in its room: everything that its operator granted, ready to be used by its calls.

use std::sync::Arc;

use crate::audit::Audit;
use crate::capability::http::Http;

/// What is granted to one guest. The default room is empty.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Where uses and refusals are noted.
    pub audit: Audit,
    /// Where its HTTP requests may go; None: nowhere.
    pub http: Option<Arc<Http>>,
}
