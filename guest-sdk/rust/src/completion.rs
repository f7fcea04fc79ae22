//! Completion of arguments: what a completing function may return, and completion from a list.

use crate::wit::{self, Completions};
use crate::{Error, Result};

/// What a completing function may return: the values that suit what was typed, best first.
#[diagnostic::on_unimplemented(
    message = "a completion cannot return `{Self}`",
    label = "not a list of suggestions",
    note = "return a `Vec` of texts, `guesthouse::wit::Completions` (with a total), or a `guesthouse::Result` of one of these"
)]
pub trait CompletionReturn: Sized {
    /// The suggestions.
    fn completions(self) -> Result<Completions>;
}

impl CompletionReturn for Completions {
    fn completions(self) -> Result<Completions> {
        Ok(self)
    }
}

impl<S: Into<String>> CompletionReturn for Vec<S> {
    fn completions(self) -> Result<Completions> {
        let values: Vec<String> = self.into_iter().map(Into::into).collect();
        Ok(Completions { total: u32::try_from(values.len()).ok(), values, has_more: false })
    }
}

impl<T: CompletionReturn, E: Into<Error>> CompletionReturn for Result<T, E> {
    fn completions(self) -> Result<Completions> {
        self.map_err(Into::into)?.completions()
    }
}

/// Those of a list that begin with what was typed, without regard to ASCII case.
#[doc(hidden)]
pub fn from_list(list: &[&str], value: &str) -> Vec<String> {
    let begins = |item: &&&str| item.as_bytes().get(..value.len()).is_some_and(|start| start.eq_ignore_ascii_case(value.as_bytes()));
    list.iter().filter(begins).map(|item| (*item).to_owned()).collect()
}

#[doc(hidden)]
pub fn finish(returned: impl CompletionReturn) -> Result<Completions, wit::Error> {
    returned.completions().map_err(|error| match error.split() {
        Err(error) => error,
        Ok(_) => wit::Error::Internal("a completion cannot ask the client".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::from_list;

    #[test]
    fn a_list_is_filtered_by_what_was_typed() {
        let list = ["Formal", "friendly", "été"];
        assert_eq!(from_list(&list, ""), list);
        assert_eq!(from_list(&list, "F"), ["Formal", "friendly"]);
        assert_eq!(from_list(&list, "fri"), ["friendly"]);
        assert_eq!(from_list(&list, "é"), ["été"]);
        assert!(from_list(&list, "formality").is_empty());
    }
}
