//! Questions to the client: what fits which revision and which capabilities, and what counts as an answer.

use guesthouse_protocol::model::questions::{Asked, Expected, accept_unasked};
use guesthouse_protocol::model::{InputRequired, Question};
use guesthouse_protocol::{Failure, InternalKind, Reply, Revision};
use serde_json::{Value, json};

use crate::fixtures::json as raw;
use crate::schema::Schemas;

const FORM: &str = r#"{"mode":"form","message":"Who?","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"properties":{
"name":{"type":"string","minLength":1,"default":"Jo"},
"age":{"type":"integer","default":30},
"sure":{"type":"boolean","default":true},
"plan":{"type":"string","oneOf":[{"const":"a","title":"Plan A"},{"const":"b","title":"Plan B"}]},
"days":{"type":"array","title":"Days","items":{"type":"string","enum":["mo","tu"]}}},"required":["name"]}}"#;
const URL: &str = r#"{"mode":"url","message":"Sign in","url":"https://example.com/in","elicitationId":"e1"}"#;
const SAMPLE: &str = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}],"maxTokens":9,"includeContext":"thisServer","unknown":1}"#;
const SAMPLE_TOOLS: &str =
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":9,"tools":[],"toolChoice":{"mode":"auto"}}"#;

fn question(name: &str) -> Question {
    match name {
        "form" => Question::Elicit(raw(FORM)),
        "url" => Question::Elicit(raw(URL)),
        "sample" => Question::Sample(raw(SAMPLE)),
        "sample-tools" => Question::Sample(raw(SAMPLE_TOOLS)),
        "roots" => Question::Roots,
        "nested" => Question::Elicit(raw(r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#)),
        _ => panic!("no such question: {name}"),
    }
}

/// The outcome that asks these, by names with `+` between them, each under its own name. `ask:` alone asks nothing.
pub(crate) fn asking(names: &str) -> Reply {
    let names = names.split('+').filter(|name| !name.is_empty());
    let questions = names.map(|name| Asked { key: name.into(), question: question(name) }).collect();
    let (request_state, guest_state) = (Some("sealed".into()), Some(b"state".to_vec()));
    Reply::InputRequired(Box::new(InputRequired { questions, request_state, guest_state, task: None }))
}

/// The question as the client gets it, or the capabilities that it lacks.
fn fit(name: &str, revision: Revision, capabilities: &Value) -> Result<Value, Value> {
    let questions = vec![Asked { key: "k".into(), question: question(name) }];
    let mut asked = InputRequired { questions, ..Default::default() };
    match asked.fit(revision, &raw(&capabilities.to_string())) {
        Ok(()) => {
            let once = format!("{asked:?}");
            asked.fit(revision, &raw(&capabilities.to_string())).unwrap();
            assert_eq!(format!("{asked:?}"), once, "fitting twice changes something");
            let params = asked.questions[0].question.params();
            Ok(params.map_or(Value::Null, |params| serde_json::from_str(params.get()).unwrap()))
        }
        Err(Failure::MissingClientCapability(missing)) => Err(serde_json::from_str(missing.get()).unwrap()),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn a_client_is_asked_only_what_it_declared() {
    use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};
    let (form, url) = (json!({ "elicitation": { "form": {} } }), json!({ "elicitation": { "url": {} } }));
    let (bare, both) = (json!({ "elicitation": {} }), json!({ "elicitation": { "form": {}, "url": {} } }));
    let (sampling, tools) = (json!({ "sampling": {} }), json!({ "sampling": { "tools": {} } }));
    let (roots, none) = (json!({ "roots": {} }), json!({}));
    let table: &[(&str, Revision, &Value, Option<&Value>)] = &[
        ("form", V2026_07_28, &bare, None),
        ("form", V2026_07_28, &form, None),
        ("form", V2026_07_28, &both, None),
        ("form", V2026_07_28, &url, Some(&form)),
        ("form", V2026_07_28, &none, Some(&form)),
        ("form", V2025_11_25, &bare, None),
        ("form", V2025_06_18, &bare, None),
        ("form", V2024_11_05, &bare, Some(&form)),
        ("url", V2026_07_28, &both, None),
        ("url", V2026_07_28, &bare, Some(&url)),
        ("url", V2025_11_25, &url, None),
        ("url", V2025_06_18, &both, Some(&url)),
        ("sample", V2024_11_05, &sampling, None),
        ("sample", V2026_07_28, &roots, Some(&sampling)),
        ("sample-tools", V2026_07_28, &sampling, Some(&tools)),
        ("sample-tools", V2025_11_25, &tools, None),
        ("sample-tools", V2025_06_18, &sampling, None),
        ("roots", V2024_11_05, &roots, None),
        ("roots", V2026_07_28, &sampling, Some(&roots)),
        ("roots", V2026_07_28, &json!({ "roots": null }), Some(&roots)),
    ];
    for (name, revision, capabilities, missing) in table {
        let fitted = fit(name, *revision, capabilities);
        assert_eq!(fitted.as_ref().err(), *missing, "{name} {revision} {capabilities}");
    }
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let Reply::InputRequired(mut asked) = asking("form+url+roots+sample-tools") else { panic!() };
    let Err(Failure::MissingClientCapability(missing)) = asked.fit(Revision::LATEST_MODERN, &raw("{}")) else { panic!() };
    let missing: Value = serde_json::from_str(missing.get()).unwrap();
    assert_eq!(missing, json!({ "elicitation": { "form": {}, "url": {} }, "roots": {}, "sampling": {} }));
}

#[test]
fn a_question_has_the_form_of_its_revision() {
    let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
    let mut schemas = Schemas::new();
    for revision in Revision::ALL {
        for name in ["form", "url", "sample", "sample-tools", "roots"] {
            let Ok(params) = fit(name, revision, &all) else { continue };
            let asked = question(name);
            let mut request = json!({ "method": asked.method() });
            if !params.is_null() {
                request["params"] = params;
            }
            if revision == Revision::V2025_11_25 {
                request["jsonrpc"] = json!("2.0");
                request["id"] = json!(1);
            }
            let definition = match asked {
                Question::Elicit(_) => "ElicitRequest",
                Question::Sample(_) => "CreateMessageRequest",
                Question::Roots => "ListRootsRequest",
            };
            assert_eq!(schemas.problem(revision, definition, &request), None, "{name}");
        }
    }
    let old = fit("form", Revision::V2025_06_18, &all).unwrap();
    assert_eq!(
        old["requestedSchema"]["properties"],
        json!({
            "name": { "type": "string", "minLength": 1 },
            "age": { "type": "integer" },
            "sure": { "type": "boolean", "default": true },
            "plan": { "type": "string", "enum": ["a", "b"], "enumNames": ["Plan A", "Plan B"] },
            "days": { "title": "Days", "type": "string", "description": "Days (separated by commas: mo, tu)" },
        })
    );
    let lowered = fit("sample", Revision::V2024_11_05, &all).unwrap();
    let texts: Vec<&Value> = lowered["messages"].as_array().unwrap().iter().map(|message| &message["content"]["text"]).collect();
    assert_eq!(texts, ["a", "[audio]"]);
    assert_eq!(fit("sample", Revision::V2026_07_28, &all).unwrap().get("includeContext"), None);
    assert_eq!(fit("url", Revision::V2026_07_28, &all).unwrap().get("elicitationId"), None);
    assert_eq!(fit("url", Revision::V2025_11_25, &all).unwrap()["elicitationId"], "e1");
}

#[test]
fn questions_that_nobody_could_answer_are_the_handlers_fault() {
    let many = |count: usize, size: usize| {
        let params = json!({ "message": "x".repeat(size), "requestedSchema": { "type": "object", "properties": {} } });
        let asked = |at| Asked { key: format!("k{at}"), question: Question::Elicit(raw(&params.to_string())) };
        (0..count).map(asked).collect()
    };
    let one = |key: &str, params: &str| vec![Asked { key: key.into(), question: Question::Elicit(raw(params)) }];
    let twice = vec![Asked { key: "a".into(), question: Question::Roots }, Asked { key: "a".into(), question: Question::Roots }];
    let table: Vec<(Vec<Asked>, InternalKind)> = vec![
        (many(17, 1), InternalKind::OutputTooLarge),
        (many(16, 1 << 16), InternalKind::OutputTooLarge),
        (one("", FORM), InternalKind::InvalidOutput),
        (one(&"k".repeat(257), FORM), InternalKind::InvalidOutput),
        (twice, InternalKind::InvalidOutput),
        (one("a", "[]"), InternalKind::InvalidOutput),
        (one("a", "{}"), InternalKind::InvalidOutput),
        (one("a", r#"{"message":"m"}"#), InternalKind::InvalidOutput),
        (one("a", r#"{"message":"m","mode":"carrier pigeon"}"#), InternalKind::InvalidOutput),
        (one("a", r#"{"message":"m","mode":"url","url":"nowhere"}"#), InternalKind::InvalidOutput),
        (vec![Asked { key: "a".into(), question: question("nested") }], InternalKind::InvalidOutput),
        (vec![Asked { key: "a".into(), question: Question::Sample(raw("{}")) }], InternalKind::InvalidOutput),
        (
            vec![Asked { key: "a".into(), question: Question::Sample(raw(r#"{"maxTokens":1,"messages":[{"role":"user"}]}"#)) }],
            InternalKind::InvalidOutput,
        ),
    ];
    let all = raw(r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#);
    for (questions, expected) in table {
        let shown = format!("{questions:?}").chars().take(120).collect::<String>();
        let mut asked = InputRequired { questions, ..Default::default() };
        match asked.fit(Revision::LATEST_MODERN, &all) {
            Err(Failure::Internal { kind, .. }) => assert_eq!(kind, expected, "{shown}"),
            other => panic!("{shown}: {other:?}"),
        }
    }
    let mut most = InputRequired { questions: many(16, 1), ..Default::default() };
    assert!(most.fit(Revision::LATEST_MODERN, &all).is_ok());
}

#[test]
fn an_answer_must_fit_its_question() {
    let form = Expected::of(&question("form"));
    let table: &[(&Expected, &str, bool)] = &[
        (&form, r#"{"action":"accept","content":{"name":"Jo"}}"#, true),
        (&form, r#"{"action":"accept","content":{"name":"Jo","more":1}}"#, true),
        (&form, r#"{"action":"accept","content":{"name":"Jo","age":3.0,"plan":"b","days":["tu"],"sure":false}}"#, true),
        (&form, r#"{"action":"accept","content":{"name":7}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","age":3.5}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","plan":"c"}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","days":["su"]}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","sure":"yes"}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","x":{"y":1}}}"#, false),
        (&form, r#"{"action":"accept","content":{"name":"Jo","x":null}}"#, false),
        (&form, r#"{"action":"accept","content":{}}"#, false),
        (&form, r#"{"action":"accept"}"#, false),
        (&form, r#"{"action":"accept","content":[]}"#, false),
        (&form, r#"{"action":"decline"}"#, true),
        (&form, r#"{"action":"cancel","content":{"name":7}}"#, true),
        (&form, r#"{"action":"shrug"}"#, false),
        (&form, r#"{"role":"user","model":"m","content":{"type":"text","text":"t"}}"#, false),
        (&form, "12345", false),
        (&form, "null", false),
        (&Expected::Form(None), r#"{"action":"accept"}"#, true),
        (&Expected::Url, r#"{"action":"accept"}"#, true),
        (&Expected::Url, "{}", false),
        (&Expected::Sample, r#"{"role":"assistant","model":"m","content":{"type":"text","text":"t"}}"#, true),
        (&Expected::Sample, r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"t"},{"type":"tool_use"}]}"#, true),
        (&Expected::Sample, r#"{"role":"assistant","content":{"type":"text","text":"t"}}"#, false),
        (&Expected::Sample, r#"{"role":"robot","model":"m","content":{"type":"text"}}"#, false),
        (&Expected::Sample, r#"{"role":"assistant","model":"m","content":"t"}"#, false),
        (&Expected::Roots, r#"{"roots":[{"uri":"file:///a","name":"a"}]}"#, true),
        (&Expected::Roots, r#"{"roots":[]}"#, true),
        (&Expected::Roots, r#"{"roots":[{"name":"a"}]}"#, false),
        (&Expected::Roots, r#"{"action":"decline"}"#, false),
    ];
    for (expected, answer, fits) in table {
        assert_eq!(expected.accept(&raw(answer)).is_some(), *fits, "{} {answer}", expected.as_str());
    }
    for (answer, fits) in [(r#"{"action":"accept"}"#, true), (r#"{"roots":[]}"#, true), ("{}", false), ("7", false)] {
        assert_eq!(accept_unasked(&raw(answer)).is_some(), fits, "{answer}");
    }
    for kind in [form, Expected::Url, Expected::Sample, Expected::Roots] {
        assert_eq!(Expected::parse(kind.as_str()).unwrap().as_str(), kind.as_str());
    }
}

#[test]
fn choices_that_were_typed_are_taken_apart() {
    let form = Expected::of(&question("form"));
    let answer = form.accept(&raw(r#"{"action":"accept","content":{"name":"Jo","days":"mo , tu,"}}"#)).unwrap();
    let answer: Value = serde_json::from_str(answer.get()).unwrap();
    assert_eq!(answer["content"]["days"], json!(["mo", "tu"]));
    assert!(form.accept(&raw(r#"{"action":"accept","content":{"name":"Jo","days":"mo, su"}}"#)).is_none());
}
