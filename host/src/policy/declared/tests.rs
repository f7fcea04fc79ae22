//! Tests of declarations: both ways to write them, what is refused, and that what was written is read.

use super::*;

fn parse(text: &str) -> Result<Wants, String> {
    let wants: Wants = toml::from_str(text).map_err(|error| error.to_string())?;
    wants.check().map(|()| wants)
}

#[test]
fn wants_have_a_short_and_a_long_form() {
    let wants = parse(
        "state = true\nhttp = [\"https://a.example/*\", { pattern = \"https://b.example/*\", required = true }]\n\
         dirs = [{ guest = \"/data\", write = true }]\nenv = [{ name = \"TZ\" }, \"LANG\"]\ninstance = \"session\"",
    )
    .unwrap();
    assert_eq!(wants.state, Some(StateWant { required: false }));
    assert_eq!(
        wants.http.iter().map(|want| (want.pattern.as_str(), want.required)).collect::<Vec<_>>(),
        [("https://a.example/*", false), ("https://b.example/*", true)]
    );
    assert_eq!(wants.dirs, [DirWant { guest: "/data".into(), write: true, required: false }]);
    assert_eq!(wants.env.iter().map(|want| want.name.as_str()).collect::<Vec<_>>(), ["TZ", "LANG"]);
    assert_eq!(wants.instance, Some(InstancePolicy::Session));
    assert_eq!(parse("state = { required = true }").unwrap().state, Some(StateWant { required: true }));
    assert_eq!(parse("state = false").unwrap(), Wants::default());
}

#[test]
fn what_is_written_is_read() {
    let wants =
        parse("state = { required = true }\nhttp = [\"https://a.example/*\"]\ndirs = [{ guest = \"/d\" }]\nenv = [\"TZ\"]").unwrap();
    for wants in [None, Some(Wants::default()), Some(wants)] {
        let declaration = Declaration::new("notes".into(), "0.1.0".into(), wants).unwrap();
        assert_eq!(Declaration::parse(&declaration.to_bytes().unwrap()).unwrap(), declaration);
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    for (text, part) in [
        ("stat = true", "stat"),
        ("state = \"yes\"", "true, false, or a table"),
        ("state = { requierd = true }", "requierd"),
        ("http = [1]", "a pattern, or a table"),
        ("http = [{ patern = \"x\" }]", "patern"),
        ("http = [\"\"]", "`wants.http` must have 1 to 1024 bytes"),
        ("http = [\"a\\u001bb\"]", "control character"),
        ("http = [\"a\\u202eb\"]", "control character"),
        ("http = [\"https://a\", { pattern = \"https://a\", required = true }]", "`wants.http` names `https://a` twice"),
        ("http = [\"a.example\"]", "`wants.http`: `a.example` is not a pattern"),
        ("dirs = [\"/data\"]", "dirs"),
        ("dirs = [{ guest = \"data\" }]", "`wants.dirs`"),
        ("dirs = [{ guest = \"/a/../b\" }]", "`wants.dirs`"),
        ("env = [\"A=B\"]", "`wants.env`"),
        ("instance = \"forever\"", "forever"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let many = format!("env = [{}]", (0..65).map(|number| format!("\"V{number}\"")).collect::<Vec<_>>().join(","));
    assert!(parse(&many).unwrap_err().contains("65 entries, and can have 64"));
}

#[test]
fn a_section_is_refused_with_a_reason() {
    let long = format!(r#"{{"format":1,"name":"{}","version":"1"}}"#, "n".repeat(SECTION_BYTES_MAX));
    for (bytes, part) in [
        ("", "EOF"),
        ("{}", "format"),
        (r#"{"format":2,"name":"n","version":"1","news":[]}"#, "format 2, and this host reads format 1"),
        (r#"{"format":1,"name":"n","version":"1","wnats":{}}"#, "wnats"),
        (r#"{"format":1,"name":"n"}"#, "version"),
        (r#"{"format":1,"name":"","version":"1"}"#, "`name`"),
        (r#"{"format":1,"name":"a\nb","version":"1"}"#, "`name`"),
        (long.as_str(), "can have 65536"),
    ] {
        let error = Declaration::parse(bytes.as_bytes()).unwrap_err();
        assert!(error.contains(part), "{bytes:.60}: {error}");
    }
    assert!(Declaration::parse(b"\xff\xfe").is_err());
}
