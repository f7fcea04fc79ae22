//! Letter case.

use std::str::FromStr;

pub enum Style {
    Upper,
    Lower,
    Title,
}

impl FromStr for Style {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "upper" => Ok(Style::Upper),
            "lower" => Ok(Style::Lower),
            "title" => Ok(Style::Title),
            _ => Err(()),
        }
    }
}

impl Style {
    pub fn apply(&self, text: &str) -> String {
        match self {
            Style::Upper => text.to_uppercase(),
            Style::Lower => text.to_lowercase(),
            Style::Title => text.split_inclusive(char::is_whitespace).map(capitalized).collect(),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars.as_str().to_lowercase().chars()).collect()
}
