//! JSON Schema (2020-12) of Rust types, written as text without any reference that leaves the schema.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::json;

/// A type whose JSON form can be described. `#[derive(Schema)]` reads doc comments and serde's attributes; [`crate::data`] derives serde's traits too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON schema",
    label = "a type that can be an argument or a structured result is needed here",
    note = "put `#[guesthouse::data]` on `{Self}`, or `#[derive(guesthouse::Schema)]` where it has serde's derives already"
)]
pub trait Schema {
    /// Whether every value is a JSON object, as structured output must be.
    const OBJECT: bool = false;

    /// Writes the members of the schema object, without its braces.
    fn members(out: &mut Writer, about: &About);
}

/// What the place where a type is used says about it.
#[derive(Clone, Copy, Default)]
pub struct About {
    /// Empty for none.
    pub description: &'static str,
    /// Smallest number, in place of the type's own; empty for none.
    pub minimum: &'static str,
    /// Largest number, in place of the type's own; empty for none.
    pub maximum: &'static str,
    /// Further members as JSON, each with a comma before it.
    pub more: &'static str,
}

impl About {
    /// Nothing.
    pub const NONE: About = About { description: "", minimum: "", maximum: "", more: "" };

    /// The description, or the type's own where the place has none.
    pub const fn or(self, description: &'static str) -> About {
        if self.description.is_empty() { About { description, ..self } } else { self }
    }
}

/// One property of an object.
#[derive(Clone, Copy)]
pub struct Property {
    /// Its key.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it may be null.
    pub nullable: bool,
    /// Writes its schema.
    pub members: fn(&mut Writer, &About),
    /// What is said about it.
    pub about: About,
}

type Body = fn(&mut Writer, &About);

/// Collects the text of one schema.
#[derive(Default)]
pub struct Writer {
    out: String,
    /// Named types that are being written, to find recursion.
    open: Vec<&'static str>,
    /// Types that refer to themselves, in the order in which that was seen.
    defined: Vec<(&'static str, &'static str, Body)>,
}

/// The whole schema of a type.
pub fn of<T: Schema + ?Sized>() -> String {
    text(T::members)
}

/// The whole schema that `body` writes.
pub fn text(body: Body) -> String {
    let mut writer = Writer::default();
    writer.braces(|writer| {
        body(writer, &About::NONE);
        writer.definitions();
    });
    writer.out
}

impl Writer {
    /// Appends JSON text.
    pub fn raw(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// `{…}`
    pub fn braces(&mut self, body: impl FnOnce(&mut Writer)) {
        self.out.push('{');
        body(self);
        self.out.push('}');
    }

    /// The members that start every typed schema.
    pub fn head(&mut self, kind: &str, about: &About) {
        self.raw("\"type\":\"");
        self.raw(kind);
        self.raw("\"");
        self.description(about);
    }

    fn description(&mut self, about: &About) {
        if !about.description.is_empty() {
            self.raw(",\"description\":");
            json::push_str(&mut self.out, about.description);
        }
    }

    /// A scalar with its bounds; those of the place win over the type's.
    pub fn scalar(&mut self, kind: &str, about: &About, minimum: &str, maximum: &str) {
        self.head(kind, about);
        for (key, place, own) in [("minimum", about.minimum, minimum), ("maximum", about.maximum, maximum)] {
            let bound = if place.is_empty() { own } else { place };
            if !bound.is_empty() {
                self.raw(",\"");
                self.raw(key);
                self.raw("\":");
                self.raw(bound);
            }
        }
        self.raw(about.more);
    }

    /// An object with known properties.
    pub fn object(&mut self, about: &About, properties: &[Property], closed: bool) {
        self.head("object", about);
        self.raw(",\"properties\":{");
        for (index, property) in properties.iter().enumerate() {
            self.comma(index);
            json::push_str(&mut self.out, property.name);
            self.raw(":");
            self.braces(|writer| match property.nullable {
                true => writer.nullable(property.members, &property.about),
                false => (property.members)(writer, &property.about),
            });
        }
        self.raw("}");
        let required = properties.iter().filter(|property| property.required);
        if required.clone().next().is_some() {
            self.raw(",\"required\":[");
            for (index, property) in required.enumerate() {
                self.comma(index);
                json::push_str(&mut self.out, property.name);
            }
            self.raw("]");
        }
        if closed {
            self.raw(",\"additionalProperties\":false");
        }
        self.raw(about.more);
    }

    /// One of several strings.
    pub fn one_of_strings(&mut self, about: &About, values: &[&str]) {
        self.head("string", about);
        self.raw(",\"enum\":[");
        for (index, value) in values.iter().enumerate() {
            self.comma(index);
            json::push_str(&mut self.out, value);
        }
        self.raw("]");
        self.raw(about.more);
    }

    /// One of several schemas: each body writes the members of one.
    pub fn one_of(&mut self, keyword: &str, head: &str, about: &About, bodies: &[Body]) {
        self.raw(head);
        self.raw("\"");
        self.raw(keyword);
        self.raw("\":[");
        for (index, body) in bodies.iter().enumerate() {
            self.comma(index);
            self.braces(|writer| body(writer, &About::NONE));
        }
        self.raw("]");
        self.description(about);
        self.raw(about.more);
    }

    /// A schema that allows null besides.
    pub fn nullable(&mut self, members: Body, about: &About) {
        self.raw("\"anyOf\":[");
        self.braces(|writer| members(writer, &About { description: "", ..*about }));
        self.raw(",{\"type\":\"null\"}]");
        self.description(about);
    }

    /// A schema in which its own name may occur again, which then becomes a reference into `$defs`.
    pub fn named(&mut self, key: &'static str, name: &'static str, about: &About, body: Body) {
        if !self.open.contains(&key) {
            self.open.push(key);
            body(self, about);
            self.open.pop();
            return;
        }
        let index = match self.defined.iter().position(|defined| defined.0 == key) {
            Some(index) => index,
            None => {
                self.defined.push((key, name, body));
                self.defined.len() - 1
            }
        };
        self.raw("\"$ref\":\"#/$defs/");
        self.definition_name(index);
        self.raw("\"");
        self.description(about);
    }

    /// Two types may share their last name, so the later one gets a number.
    fn definition_name(&mut self, index: usize) {
        let Some(&(_, name, _)) = self.defined.get(index) else { return };
        let earlier = self.defined.iter().take(index).filter(|defined| defined.1 == name).count();
        self.raw(name);
        if earlier > 0 {
            self.raw(&(earlier + 1).to_string());
        }
    }

    fn definitions(&mut self) {
        let mut index = 0;
        while let Some(&(key, _, body)) = self.defined.get(index) {
            self.raw(if index == 0 { ",\"$defs\":{\"" } else { ",\"" });
            self.definition_name(index);
            self.raw("\":");
            self.open.push(key);
            self.braces(|writer| body(writer, &About::NONE));
            self.open.pop();
            index += 1;
        }
        if index > 0 {
            self.raw("}");
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
    }
}

macro_rules! scalars {
    ($($kind:literal $min:literal $max:literal: $($type:ty)*;)*) => {
        $($(impl Schema for $type {
            fn members(out: &mut Writer, about: &About) {
                out.scalar($kind, about, $min, $max);
            }
        })*)*
    };
}
// No bounds for 64 bits: a validator that reads numbers as floats would round them.
scalars! {
    "boolean" "" "": bool;
    "string" "" "": String str;
    "number" "" "": f32 f64;
    "integer" "" "": i64 isize i128;
    "integer" "0" "": u64 usize u128;
    "integer" "0" "255": u8;
    "integer" "0" "65535": u16;
    "integer" "0" "4294967295": u32;
    "integer" "-128" "127": i8;
    "integer" "-32768" "32767": i16;
    "integer" "-2147483648" "2147483647": i32;
}

impl Schema for char {
    fn members(out: &mut Writer, about: &About) {
        out.head("string", about);
        out.raw(",\"minLength\":1,\"maxLength\":1");
        out.raw(about.more);
    }
}

impl Schema for serde_json::Value {
    fn members(out: &mut Writer, about: &About) {
        // The empty schema allows everything; members need something before their comma.
        out.raw("\"description\":");
        json::push_str(&mut out.out, if about.description.is_empty() { "Any JSON value." } else { about.description });
        out.raw(about.more);
    }
}

impl<T: Schema> Schema for [T] {
    fn members(out: &mut Writer, about: &About) {
        out.head("array", about);
        out.raw(",\"items\":");
        out.braces(|out| T::members(out, &About::NONE));
        out.raw(about.more);
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn members(out: &mut Writer, about: &About) {
        <[T]>::members(out, about);
    }
}

impl<T: Schema, const N: usize> Schema for [T; N] {
    fn members(out: &mut Writer, about: &About) {
        <[T]>::members(out, about);
        out.raw(&format!(",\"minItems\":{N},\"maxItems\":{N}"));
    }
}

impl<T: Schema> Schema for Option<T> {
    fn members(out: &mut Writer, about: &About) {
        out.nullable(T::members, about);
    }
}

macro_rules! maps {
    ($($type:ty: [$($generics:tt)*];)*) => {
        $(impl<V: Schema, $($generics)*> Schema for $type {
            const OBJECT: bool = true;
            fn members(out: &mut Writer, about: &About) {
                out.head("object", about);
                out.raw(",\"additionalProperties\":");
                out.braces(|out| V::members(out, &About::NONE));
                out.raw(about.more);
            }
        })*
    };
}
maps! { BTreeMap<String, V>: []; HashMap<String, V, S>: [S]; }

macro_rules! transparent {
    ($($type:ty: [$($generics:tt)*] $inner:ty;)*) => {
        $(impl<$($generics)*> Schema for $type {
            const OBJECT: bool = <$inner as Schema>::OBJECT;
            fn members(out: &mut Writer, about: &About) {
                <$inner as Schema>::members(out, about);
            }
        })*
    };
}
transparent! {
    &T: [T: Schema + ?Sized] T;
    Box<T>: [T: Schema + ?Sized] T;
    std::rc::Rc<T>: [T: Schema + ?Sized] T;
    Cow<'_, T>: [T: Schema + ToOwned + ?Sized] T;
}
