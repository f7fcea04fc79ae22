//! What the macro makes of an impl block, called as the host would.

use std::cell::Cell;
use std::str::FromStr;

use guesthouse::testing::{self, Script};
use guesthouse::wit::{Body, Completions, Content, Error, PromptOutcome, ReadOutcome, Reference, TaskSupport, ToolOutcome};
use guesthouse::{
    Completion as _, Ctx, Elicited, Json, Level, Message, Prompts as _, Resources as _, Result, Server as _, Subscriptions as _,
    ToolResult, Tools as _, bail, data, ensure,
};

#[data]
struct Config {
    unit: Option<String>,
}

struct Everything {
    unit: String,
    calls: Cell<u32>,
}

#[data]
struct Point {
    /// Across.
    x: f64,
    y: f64,
}

#[data]
struct Answer {
    sure: bool,
}

struct Even(u32);

impl FromStr for Even {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Even, Self::Err> {
        Ok(Even(text.parse::<u32>()? / 2 * 2))
    }
}

/// A server with
/// everything.
#[guesthouse::server(name = "everything", version = "1.2.3", title = "Everything", website = "https://example.com")]
impl Everything {
    #[init]
    fn new(config: Config) -> Result<Self> {
        let unit = config.unit.unwrap_or_else(|| "metre".into());
        ensure!(unit != "furlong", "nobody uses {unit}s");
        Ok(Everything { unit, calls: Cell::new(0) })
    }

    /// Says something.
    #[tool(name = "say-it", title = "Say", read_only, destructive = false, task = "optional", meta = r#"{"a":1}"#)]
    fn say(
        &self,
        /// What
        /// to say.
        text: &str,
        ctx: &Ctx,
        #[arg(min = 1, max = 3, default = 2)] times: u8,
        #[arg(name = "type", one_of = ["a", "b"])] r#type: Option<String>,
        #[arg(default = "!")] end: &str,
        words: Option<&[String]>,
    ) -> String {
        self.calls.set(self.calls.get() + 1);
        ctx.log(Level::Notice, "saying");
        ctx.progress(1.0, Some(2.0), None);
        let words = words.unwrap_or_default().join("+");
        format!("{}{end} {} {words} {} {}", text.repeat(times.into()), r#type.as_deref().unwrap_or("-"), self.unit, self.calls.get())
    }

    #[tool]
    fn mirror(#[args] point: Point) -> Json<Point> {
        Json(Point { x: -point.x, y: -point.y })
    }

    #[tool]
    fn parse(text: &str) -> Result<Json<Point>> {
        Ok(Json(Point { x: text.parse()?, y: 0.0 }))
    }

    #[tool(output = Point)]
    fn by_hand() -> Result<ToolResult> {
        ToolResult::new().text("by hand").structured(&Point { x: 0.0, y: 1.5 })
    }

    #[tool]
    fn sure(ctx: &Ctx) -> Result<String> {
        match ctx.elicit::<Answer>("sure", "Are you sure?")? {
            Elicited::Accept(Answer { sure }) => Ok(format!("sure: {sure}")),
            Elicited::Decline | Elicited::Cancel => bail!("no answer"),
        }
    }

    #[tool]
    fn nothing() {}

    /// A resource.
    #[resource(uri = "t://text", title = "Text")]
    fn text(&self) -> String {
        self.unit.clone()
    }

    #[resource(uri = "t://bytes", mime = "image/png")]
    fn bytes() -> &'static [u8] {
        &[1, 2, 3]
    }

    #[template(uri = "t://even/{number}/{+rest}")]
    fn even(rest: &str, number: Even) -> Option<Json<(u32, String)>> {
        (rest != "gone").then(|| Json((number.0, rest.into())))
    }

    /// A prompt.
    #[prompt]
    fn ask(
        /// A name.
        who: &str,
        #[arg(complete = ["1", "2", "10"])] count: Option<u32>,
    ) -> Vec<Message> {
        vec![Message::user(format!("{who} {count:?}")), Message::assistant("yes")]
    }

    #[complete(ask, who)]
    fn names(value: &str, resolved: &[(String, String)]) -> Vec<String> {
        vec![format!("{value}{}", resolved.len())]
    }

    #[complete(even, number)]
    fn numbers(&self, value: &str) -> Result<Completions> {
        ensure!(value != "x", "no");
        Ok(Completions { values: vec!["2".into()], total: Some(500), has_more: true })
    }

    #[subscribe]
    fn watch(uri: &str) -> Result<()> {
        if uri != "t://text" {
            return Err(guesthouse::Error::not_found(uri));
        }
        Ok(())
    }
}

fn server() -> Everything {
    testing::script(Script::default());
    testing::start(r#"{"unit":"foot"}"#).unwrap()
}

#[test]
fn the_server_describes_itself() {
    let info = Everything::describe();
    assert_eq!((info.name.as_str(), info.version.as_str(), info.title.as_deref()), ("everything", "1.2.3", Some("Everything")));
    assert_eq!(info.description.as_deref(), Some("A server with everything."));
    assert_eq!(info.website_url.as_deref(), Some("https://example.com"));
}

#[test]
fn configuration_makes_the_server_or_says_why_not() {
    assert_eq!(testing::start::<Everything>("").unwrap().unit, "metre");
    assert_eq!(testing::start::<Everything>(r#"{"unit":"furlong"}"#).err().unwrap(), "nobody uses furlongs");
    assert!(testing::start::<Everything>(r#"{"unit":1}"#).err().unwrap().starts_with("the configuration does not fit: "));
}

#[test]
fn tools_are_described_by_their_functions() {
    let tools = server().list_tools(None).unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["say-it", "mirror", "parse", "by_hand", "sure", "nothing"]);
    let say = &tools[0];
    assert_eq!((say.title.as_deref(), say.description.as_deref()), (Some("Say"), Some("Says something.")));
    assert_eq!((say.task_support, say.meta.as_deref()), (TaskSupport::Optional, Some(r#"{"a":1}"#)));
    let annotations = say.annotations.as_ref().unwrap();
    assert_eq!((annotations.read_only, annotations.destructive, annotations.idempotent), (Some(true), Some(false), None));
    assert_eq!(
        say.input_schema,
        concat!(
            r#"{"type":"object","properties":{"text":{"type":"string","description":"What to say."},"#,
            r#""times":{"type":"integer","minimum":1,"maximum":3,"default":2},"type":{"type":"string","enum":["a","b"]},"#,
            r#""end":{"type":"string","default":"!"},"words":{"type":"array","items":{"type":"string"}}},"#,
            r#""required":["text"],"additionalProperties":false}"#
        )
    );
    let point =
        r#"{"type":"object","properties":{"x":{"type":"number","description":"Across."},"y":{"type":"number"}},"required":["x","y"]}"#;
    assert_eq!(tools[1].input_schema, point);
    assert!(tools[1..=3].iter().all(|tool| tool.output_schema.as_deref() == Some(point)));
    assert_eq!(tools[5].input_schema, r#"{"type":"object","properties":{},"additionalProperties":false}"#);
}

#[test]
fn arguments_reach_the_function_with_their_defaults() {
    let server = server();
    let say = |arguments| testing::call(&server, "say-it", arguments).unwrap().text();
    assert_eq!(say(r#"{"text":"a"}"#), "aa! -  foot 1");
    assert_eq!(say(r#"{"text":"a","times":3,"type":"b","end":"?","words":["x","y"]}"#), "aaa? b x+y foot 2");
    assert_eq!(say(r#"{"text":"a","type":null,"words":null}"#), "aa! -  foot 3");
    let seen = testing::seen();
    assert_eq!(seen.logs[0], (Level::Notice, None, "\"saying\"".into()));
    assert_eq!(seen.progress, [(1.0, Some(2.0), None)]);
}

#[test]
fn results_are_structured_with_a_text_beside() {
    let mirrored = testing::call(&server(), "mirror", r#"{"x":1,"y":-2.5}"#).unwrap();
    assert_eq!(mirrored.structured(), guesthouse::serde_json::json!({ "x": -1.0, "y": 2.5 }));
    assert_eq!(mirrored.text(), r#"{"x":-1.0,"y":2.5}"#);
    let by_hand = testing::call(&server(), "by_hand", "{}").unwrap();
    assert_eq!((by_hand.text().as_str(), by_hand.structured()["y"].as_f64()), ("by hand", Some(1.5)));
    assert!(testing::call(&server(), "nothing", "{}").unwrap().0.content.is_empty());
}

#[test]
fn errors_reach_the_model_as_text() {
    let failed = testing::call(&server(), "parse", r#"{"text":"x"}"#).unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.text(), "invalid float literal");
    assert!(matches!(server().call_tool("parse", "{}"), Err(Error::InvalidParams(text)) if text == "The argument `text` is missing."));
    assert!(matches!(server().call_tool("parse", "[1]"), Err(Error::InvalidParams(_))));
    assert!(matches!(server().call_tool("gone", "{}"), Err(Error::NotFound(name)) if name == "gone"));
}

#[test]
fn a_question_ends_the_call_until_it_is_answered() {
    let server = server();
    assert!(matches!(server.call_tool("sure", "{}"), Ok(ToolOutcome::InputRequired(asked)) if asked.questions[0].key == "sure"));
    let answers = [("sure".to_owned(), Ok(r#"{"action":"accept","content":{"sure":true}}"#.to_owned()))].into();
    testing::script(Script { answers, ..Script::default() });
    assert_eq!(testing::call(&server, "sure", "{}").unwrap().text(), "sure: true");
}

fn read(uri: &str) -> Result<(Option<String>, Body), Error> {
    match server().read_resource(uri)? {
        ReadOutcome::Complete(mut result) => {
            let contents = result.contents.remove(0);
            assert_eq!(contents.uri, uri);
            Ok((contents.mime_type, contents.body))
        }
        ReadOutcome::InputRequired(_) => panic!("nothing is asked"),
    }
}

#[test]
fn resources_are_read_by_uri() {
    assert!(matches!(read("t://text"), Ok((Some(mime), Body::Text(text))) if mime == "text/plain" && text == "foot"));
    assert!(matches!(read("t://bytes"), Ok((Some(mime), Body::Blob(bytes))) if mime == "image/png" && bytes == [1, 2, 3]));
    assert!(
        matches!(read("t://even/7/a/b%20c"), Ok((Some(mime), Body::Text(text))) if mime == "application/json" && text == r#"[6,"a/b c"]"#)
    );
    for uri in ["t://none", "t://even/x/a", "t://even/7/gone", "t://even/7/%zz"] {
        assert!(matches!(read(uri), Err(Error::NotFound(name)) if name == uri), "{uri}");
    }
    let resources = server().list_resources(None).unwrap().resources;
    assert_eq!((resources[0].name.as_str(), resources[0].title.as_deref()), ("text", Some("Text")));
    assert_eq!(server().list_templates(None).unwrap().templates[0].uri_template, "t://even/{number}/{+rest}");
}

#[test]
fn prompts_are_filled_in() {
    let get = |arguments: &[(&str, &str)]| {
        let arguments: Vec<_> = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        match server().get_prompt("ask", &arguments)? {
            PromptOutcome::Complete(result) => Ok(result),
            PromptOutcome::InputRequired(_) => panic!("nothing is asked"),
        }
    };
    let result = get(&[("who", "Ada"), ("count", "3")]).unwrap();
    assert_eq!((result.description.as_deref(), result.messages.len()), (Some("A prompt."), 2));
    assert!(matches!(&result.messages[0].content, Content::Text(text) if text.text == "Ada Some(3)"));
    assert!(matches!(get(&[]), Err(Error::InvalidParams(text)) if text == "The argument `who` is missing."));
    let wrong = get(&[("who", "Ada"), ("count", "x")]);
    assert!(matches!(wrong, Err(Error::InvalidParams(text)) if text == "The argument `count` is wrong: invalid digit found in string"));
    let arguments = &server().list_prompts(None).unwrap().prompts[0].arguments;
    assert_eq!(arguments.iter().map(|argument| argument.required).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn arguments_are_completed() {
    let complete = |reference: Reference, argument: &str, value: &str| {
        server().complete(&reference, argument, value, &[("a".into(), "b".into())]).map(|found| (found.values, found.total, found.has_more))
    };
    let ask = || Reference::Prompt("ask".into());
    let even = || Reference::ResourceTemplate("t://even/{number}/{+rest}".into());
    assert_eq!(complete(ask(), "who", "A").unwrap(), (vec!["A1".into()], Some(1), false));
    assert_eq!(complete(ask(), "count", "1").unwrap(), (vec!["1".into(), "10".into()], Some(2), false));
    assert_eq!(complete(even(), "number", "").unwrap(), (vec!["2".into()], Some(500), true));
    assert_eq!(complete(even(), "rest", "").unwrap(), (vec![], Some(0), false));
    assert!(matches!(complete(even(), "number", "x"), Err(Error::Internal(text)) if text == "no"));
    assert!(matches!(complete(Reference::Prompt("gone".into()), "who", ""), Err(Error::NotFound(name)) if name == "gone"));
}

#[test]
fn subscriptions_are_taken_or_refused() {
    assert!(server().subscribe("t://text").is_ok());
    assert!(matches!(server().subscribe("t://gone"), Err(Error::NotFound(_))));
    assert!(server().unsubscribe("t://text").is_ok());
}
