//! Tests of what the suite does not look at.

use guesthouse::testing::{self, Script};
use guesthouse::wit::{Error, Question, ToolOutcome};
use guesthouse::{Prompts as _, Resources as _, Tools as _};

use super::*;

fn questions(name: &str) -> Vec<(String, Question)> {
    match Conformance.call_tool(name, "{}") {
        Ok(ToolOutcome::InputRequired(asked)) => asked.questions.into_iter().map(|asked| (asked.key, asked.question)).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

fn answered(answers: &[(&str, &str)], state: Option<&str>) {
    let answers = answers.iter().map(|(key, answer)| ((*key).to_owned(), Ok((*answer).to_owned()))).collect();
    testing::script(Script { answers, state: state.map(Into::into), ..Script::default() });
}

#[test]
fn every_tool_and_prompt_has_a_description_and_the_first_needs_nothing() {
    let tools = Conformance.list_tools(None).unwrap().tools;
    assert!(tools.iter().all(|tool| tool.description.is_some()));
    assert_eq!(testing::call(&Conformance, &tools[0].name, "{}").unwrap().text(), "This is a simple text response for testing.");
    assert!(Conformance.list_prompts(None).unwrap().prompts.iter().all(|prompt| prompt.description.is_some()));
    assert_eq!(Conformance.list_resources(None).unwrap().resources.len(), 3);
}

#[test]
fn schemas_reach_the_client_as_they_are_written() {
    let tools = Conformance.list_tools(None).unwrap().tools;
    let schema = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().input_schema.clone();
    assert_eq!(schema("json_schema_2020_12_tool"), include_str!("../schema.json").trim_ascii());
    assert!(schema("test_custom_header").contains(r#""value":{"type":"string","description":"Any text.","x-mcp-header":"Value"}"#));
}

#[test]
fn a_form_is_asked_until_its_answer_fits() {
    testing::script(Script::default());
    assert_eq!(questions("test_input_required_result_elicitation")[0].0, "user_name");
    for wrong in [r#"{"action":"accept","content":{"name":12345}}"#, "null", "12345", r#"{"action":"accept"}"#] {
        answered(&[("user_name", wrong)], None);
        assert_eq!(questions("test_input_required_result_elicitation").len(), 1, "{wrong}");
    }
    answered(&[("user_name", r#"{"action":"accept","content":{"name":"Ada"}}"#)], None);
    assert_eq!(testing::call(&Conformance, "test_input_required_result_elicitation", "{}").unwrap().text(), "Hello, Ada!");
}

#[test]
fn questions_go_out_together_and_only_those_that_are_open() {
    testing::script(Script::default());
    assert_eq!(questions("test_input_required_result_multiple_inputs").len(), 3);
    answered(&[("greeting", r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Hi"}}"#)], None);
    let keys: Vec<_> = questions("test_input_required_result_multiple_inputs").into_iter().map(|question| question.0).collect();
    assert_eq!(keys, ["user_name", "client_roots"]);
}

#[test]
fn rounds_follow_each_other() {
    testing::script(Script::default());
    assert_eq!(questions("test_input_required_result_multi_round")[0].0, "step1");
    answered(&[("step1", r#"{"action":"accept","content":{"name":"Ada"}}"#)], Some("round 1"));
    assert_eq!(questions("test_input_required_result_multi_round")[0].0, "step2");
}

#[test]
fn lost_state_is_noticed() {
    let accept = [("confirm", r#"{"action":"accept","content":{"ok":true}}"#)];
    answered(&accept, Some("waiting for a confirmation"));
    let call = || testing::call(&Conformance, "test_input_required_result_request_state", "{}").unwrap();
    assert_eq!(call().text(), "Confirmed, state-ok");
    answered(&accept, None);
    assert!(call().is_error());
}

#[test]
fn a_missing_capability_is_named() {
    testing::script(Script::default());
    match Conformance.call_tool("test_missing_capability", "{}") {
        Err(Error::MissingClientCapability(json)) => assert_eq!(json, r#"{"sampling":{}}"#),
        other => panic!("{other:?}"),
    }
}

#[test]
fn choices_are_valid_json() {
    testing::script(Script::default());
    match &questions("test_elicitation_sep1330_enums")[0].1 {
        Question::Elicit(params) => {
            let params: guesthouse::serde_json::Value = guesthouse::json::from_text(params).unwrap();
            assert_eq!(params["requestedSchema"]["properties"].as_object().unwrap().len(), 5);
        }
        other => panic!("{other:?}"),
    }
}
