//! Lists of things with names, which guests and the rows of tests are made of: neither compiles with one more or one less.

/// Declares an enum of which each value has a name.
macro_rules! named {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $value_doc:literal])* $value:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $value_doc])* $value,)+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$value,)+];

            pub const fn name(self) -> &'static str {
                match self { $($name::$value => $text,)+ }
            }
        }
    };
}
