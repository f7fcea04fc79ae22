//! How shared values are saved: as what they share.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Writes the value.
pub fn serialize<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, to: S) -> Result<S::Ok, S::Error> {
    T::serialize(value, to)
}

/// Reads the value, which nobody else shares yet.
pub fn deserialize<'de, T: ?Sized, D: Deserializer<'de>>(from: D) -> Result<Arc<T>, D::Error>
where
    Box<T>: Deserialize<'de>,
{
    Box::<T>::deserialize(from).map(Arc::from)
}

/// The same where there may be none.
pub mod option {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the value, if there is one.
    pub fn serialize<T: Serialize + ?Sized, S: Serializer>(value: &Option<Arc<T>>, to: S) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(to)
    }

    /// Reads the value, if there is one.
    pub fn deserialize<'de, T: ?Sized, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<T>>, D::Error>
    where
        Box<T>: Deserialize<'de>,
    {
        Ok(Option::<Box<T>>::deserialize(from)?.map(Arc::from))
    }
}
