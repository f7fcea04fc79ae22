//! Literals of attributes as JSON text.

use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprLit, Lit, Result, UnOp};

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A literal (text, number, boolean, or an array of them) as JSON.
pub fn json(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Str(text) => Ok(quote(&text.value())),
            Lit::Int(number) => Ok(number.base10_digits().into()),
            Lit::Float(number) => Ok(number.base10_parse::<f64>()?.to_string()),
            Lit::Bool(value) => Ok(value.value.to_string()),
            other => Err(Error::new(other.span(), "a text, a number or a boolean is needed here")),
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => Ok(format!("-{}", number(&unary.expr)?)),
        Expr::Array(array) => Ok(format!("[{}]", array.elems.iter().map(json).collect::<Result<Vec<_>>>()?.join(","))),
        Expr::Reference(reference) => json(&reference.expr),
        Expr::Group(group) => json(&group.expr),
        other => Err(Error::new(other.span(), "a literal is needed here, because it becomes part of the schema")),
    }
}

/// A number as JSON.
pub fn number(expr: &Expr) -> Result<String> {
    let text = json(expr)?;
    match text.parse::<f64>() {
        Ok(_) => Ok(text),
        Err(_) => Err(Error::new(expr.span(), "a number is needed here")),
    }
}

/// Whether the expression is a text literal.
pub fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
}
