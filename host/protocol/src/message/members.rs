//! Splits JSON objects into the members that the protocol asks for, in one pass and without a tree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Takes the members of an object one after the other.
pub(super) trait Sink<'a>: Default {
    /// Reads the value of the member called `name` from `map`; must take exactly one value.
    fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A) -> Result<(), A::Error>;
}

/// An object taken apart, or the news that there was something else in its place.
#[derive(Debug)]
pub(super) enum Shape<S> {
    Object(S),
    Null,
    Other,
}

impl<'de, S: Sink<'de>> Deserialize<'de> for Shape<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape<S>, D::Error> {
        deserializer.deserialize_any(ShapeVisitor(PhantomData))
    }
}

struct ShapeVisitor<S>(PhantomData<S>);

impl<'de, S: Sink<'de>> Visitor<'de> for ShapeVisitor<S> {
    type Value = Shape<S>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<S>, A::Error> {
        let mut sink = S::default();
        while let Some(Key(name)) = map.next_key()? {
            sink.member(name, &mut map)?;
        }
        Ok(Shape::Object(sink))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape<S>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::Other)
    }

    fn visit_unit<E>(self) -> Result<Shape<S>, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape<S>, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape<S>, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape<S>, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape<S>, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape<S>, E> {
        Ok(Shape::Other)
    }
}

/// A member name, borrowed from the message unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The members of an object by a fixed list of names, each as raw text.
#[derive(Debug)]
pub(super) struct Slots<'a, const N: usize> {
    values: [Option<&'a RawValue>; N],
}

impl<const N: usize> Default for Slots<'_, N> {
    fn default() -> Self {
        Slots { values: [None; N] }
    }
}

impl<'a, const N: usize> Slots<'a, N> {
    /// Stores a value; false if the slot was taken already, which means that the object names a member twice.
    pub(super) fn put(&mut self, index: usize, value: &'a RawValue) -> bool {
        self.values.get_mut(index).is_some_and(|slot| slot.replace(value).is_none())
    }

    pub(super) fn get(&self, index: usize) -> Option<&'a RawValue> {
        self.values.get(index).copied().flatten()
    }
}

/// The text of a JSON string, or none if the value is something else.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        // An escape may name half a surrogate pair, which no string can hold.
        serde_json::from_str::<String>(value.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The value of a JSON integer, or none if the value is something else or does not fit.
pub(crate) fn integer(value: &RawValue) -> Option<i64> {
    value.get().parse().ok()
}

/// The members of an object in their order, or none if the value is something else.
pub(crate) fn entries(value: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    #[derive(Default)]
    struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

    impl<'a> Sink<'a> for Entries<'a> {
        fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A) -> Result<(), A::Error> {
            let value = map.next_value()?;
            self.0.push((name, value));
            Ok(())
        }
    }

    match serde_json::from_str::<Shape<Entries<'_>>>(value.get()) {
        Ok(Shape::Object(entries)) => Some(entries.0),
        Ok(Shape::Null | Shape::Other) | Err(_) => None,
    }
}
