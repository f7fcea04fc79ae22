//! Paths as URIs and back.

const SCHEME: &str = "files:///";

/// The URI of a path below the folder.
pub fn of(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// The path that a URI names; none where it is no URI of ours, or no path below the folder.
pub fn path(uri: &str) -> Option<String> {
    let encoded = uri.strip_prefix(SCHEME)?;
    let mut bytes = encoded.bytes();
    let mut path = Vec::new();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        path.push(if byte == b'%' { u8::try_from(digit()? * 16 + digit()?).ok()? } else { byte });
    }
    String::from_utf8(path).ok().filter(|path| !path.is_empty() && !path.starts_with('/') && !path.contains('\0'))
}

/// What a file is, by the ending of its name; none where that says nothing.
pub fn mime_type(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "txt" | "rs" | "go" | "toml" => "text/plain",
        "md" => "text/markdown",
        "html" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive() {
        for plain in ["a", "a b/ü?#%.txt", "a/b-c_d.e~f"] {
            assert_eq!(path(&of(plain)).as_deref(), Some(plain));
            assert!(of(plain).is_ascii() && !of(plain)[SCHEME.len()..].contains(['?', '#', ' ']));
        }
        for uri in
            ["", "files:///", "files:////a", "files:///%2Fa", "files:///a%00", "files:///%", "files:///%2", "files:///%FF", "other:///a"]
        {
            assert_eq!(path(uri), None, "{uri}");
        }
    }

    #[test]
    fn endings_tell_types() {
        for (path, mime) in [("a.MD", Some("text/markdown")), ("x.d/a", None), ("a.unknown", None), ("b/c.json", Some("application/json"))]
        {
            assert_eq!(mime_type(path), mime, "{path}");
        }
    }
}
