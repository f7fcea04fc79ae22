//! Doc comments as plain text.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment of an item. Lines of one paragraph become one line; lists, indented lines and code keep theirs.
pub fn text(attrs: &[Attribute]) -> String {
    let mut out = String::new();
    let mut in_code = false;
    let mut joins = false;
    for line in attrs.iter().filter_map(line) {
        for line in line.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect::<Vec<_>>() {
            let fence = line.starts_with("```");
            let own_line = in_code || fence || line.starts_with([' ', '-', '*', '#', '|', '>']) || is_numbered(line);
            match line.is_empty() && !in_code {
                true => {
                    out.push_str("\n\n");
                    joins = false;
                }
                false => {
                    if joins {
                        out.push(if own_line { '\n' } else { ' ' });
                    }
                    out.push_str(line);
                    joins = true;
                }
            }
            if fence {
                in_code = !in_code;
            }
        }
    }
    out.trim().to_owned()
}

fn line(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            // An empty line of a comment is an empty text, which has no lines.
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(if text.value().is_empty() { "\n".into() } else { text.value() }),
            _ => None,
        },
        _ => None,
    }
}

fn is_numbered(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    #[test]
    fn paragraphs_are_joined_and_lists_are_not() {
        let item: syn::ItemFn = parse_quote! {
            /// First line
            /// and its end.
            ///
            /// - one
            /// - two
            /// 1. three
            fn f() {}
        };
        assert_eq!(super::text(&item.attrs), "First line and its end.\n\n- one\n- two\n1. three");
    }
}
