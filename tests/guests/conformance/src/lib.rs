//! What the official conformance suite expects a server to offer, by the names that the suite calls it. The first tool listed must run
//! without arguments.

mod ask;
mod content;
mod jobs;

use std::thread::sleep;
use std::time::Duration;

use guesthouse::wit::{Body, ResourceContents, Role};
use guesthouse::{Content, Ctx, Json, Level, Message, Result, bail, data};

/// Pause between two messages, long enough for each to be sent on its own.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Conformance;

#[data]
struct Address {
    street: Option<String>,
    city: Option<String>,
}

/// Contents of `test://template/{id}/data`.
#[data]
struct TemplateData {
    id: String,
    #[serde(rename = "templateTest")]
    template_test: bool,
    data: String,
}

#[guesthouse::server(instructions = "For the conformance suite.")]
impl Conformance {
    /// Returns a simple text.
    #[tool]
    fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Returns an image.
    #[tool]
    fn test_image_content() -> Content {
        content::image()
    }

    /// Returns a sound.
    #[tool]
    fn test_audio_content() -> Content {
        content::audio()
    }

    /// Returns a resource with its contents.
    #[tool]
    fn test_embedded_resource() -> Content {
        content::embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    }

    /// Returns a text, an image and a resource.
    #[tool]
    fn test_multiple_content_types() -> Vec<Content> {
        vec![
            Content::text("Multiple content types test:"),
            content::image(),
            content::embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]
    }

    /// Fails, in a way that the model sees.
    #[tool]
    fn test_error_handling() -> Result<()> {
        bail!("This tool intentionally returns an error for testing")
    }

    /// Reports progress three times.
    #[tool]
    fn test_tool_with_progress(ctx: &Ctx) -> &'static str {
        ctx.progress(0.0, Some(100.0), Some("Started"));
        sleep(PAUSE);
        ctx.progress(50.0, Some(100.0), Some("Half done"));
        sleep(PAUSE);
        ctx.progress(100.0, Some(100.0), Some("Done"));
        "Progress test completed"
    }

    /// Logs three messages.
    #[tool]
    fn test_tool_with_logging(ctx: &Ctx) -> Result<&'static str> {
        for (index, message) in ["Tool execution started", "Tool processing data", "Tool execution completed"].iter().enumerate() {
            if index > 0 {
                sleep(PAUSE);
            }
            ctx.log_data(Level::Info, Some("conformance"), message)?;
        }
        Ok("Logging test completed")
    }

    /// Logs once, for clients that asked for logs with the request.
    #[tool]
    fn test_logging_tool(ctx: &Ctx) -> &'static str {
        ctx.info("A message for whoever asked for it");
        "Logging tool completed"
    }

    /// Has a schema that uses much of JSON Schema 2020-12.
    #[tool(input_schema = include_str!("../schema.json").trim_ascii())]
    fn json_schema_2020_12_tool(
        name: Option<&str>,
        address: Option<Address>,
        #[arg(name = "contactMethod")] contact_method: Option<&str>,
    ) -> String {
        let city = address.and_then(|address| address.city.or(address.street));
        let words = [Some("Hello"), name, city.as_deref(), contact_method];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Has an argument that is mirrored as an HTTP header.
    #[tool]
    fn test_custom_header(
        /// Any text.
        #[arg(header = "Value")]
        value: &str,
    ) -> String {
        format!("The value is {value}")
    }

    /// Needs the client capability `sampling`.
    #[tool]
    fn test_missing_capability(ctx: &Ctx) -> Result<&'static str> {
        ctx.require_client("sampling")?;
        Ok("The capability is there")
    }

    /// Announces a change of the list of tools.
    #[tool]
    fn test_trigger_tool_change(ctx: &Ctx) -> &'static str {
        ctx.tools_changed();
        "Tool list change triggered"
    }

    /// Announces a change of the list of prompts.
    #[tool]
    fn test_trigger_prompt_change(ctx: &Ctx) -> &'static str {
        ctx.prompts_changed();
        "Prompt list change triggered"
    }

    /// Takes long enough for a client to lose its connection and come back.
    #[tool]
    fn test_reconnection(ctx: &Ctx) -> &'static str {
        ctx.progress(0.0, Some(1.0), Some("Started"));
        sleep(PAUSE * 40);
        "Reconnection test completed"
    }

    /// Asks the client's model.
    #[tool]
    fn test_sampling(
        ctx: &Ctx,
        /// What to ask.
        prompt: &str,
    ) -> Result<String> {
        Ok(format!("LLM response: {}", ctx.sample("sampling", prompt, 100)?.text()))
    }

    /// Asks the user for a name and an address.
    #[tool]
    fn test_elicitation(
        ctx: &Ctx,
        /// What to say to the user.
        message: &str,
    ) -> Result<String> {
        ask::account(ctx, message)
    }

    /// Asks the user with a form that has defaults.
    #[tool]
    fn test_elicitation_sep1034_defaults(ctx: &Ctx) -> Result<String> {
        ask::defaults(ctx)
    }

    /// Asks the user with a form that has every kind of choice.
    #[tool]
    fn test_elicitation_sep1330_enums(ctx: &Ctx) -> Result<String> {
        ask::choices(ctx)
    }

    /// Asks the user for a value.
    #[tool]
    fn test_streaming_elicitation(ctx: &Ctx) -> Result<String> {
        ask::value(ctx)
    }

    /// Asks the user for a name.
    #[tool]
    fn test_input_required_result_elicitation(ctx: &Ctx) -> Result<String> {
        ask::hello(ctx)
    }

    /// Asks the client's model for a capital.
    #[tool]
    fn test_input_required_result_sampling(ctx: &Ctx) -> Result<String> {
        let answer = ctx.sample("capital_question", "What is the capital of France?", 100)?;
        Ok(format!("The model says: {}", answer.text()))
    }

    /// Asks which folders the client works in.
    #[tool]
    fn test_input_required_result_list_roots(ctx: &Ctx) -> Result<String> {
        Ok(format!("The client has {} roots", ctx.roots("client_roots")?.len()))
    }

    /// Asks for a confirmation, and keeps state meanwhile.
    #[tool]
    fn test_input_required_result_request_state(ctx: &Ctx) -> Result<&'static str> {
        ask::with_state(ctx)
    }

    /// Keeps state that a client must not change.
    #[tool]
    fn test_input_required_result_tampered_state(ctx: &Ctx) -> Result<&'static str> {
        ask::with_state(ctx)
    }

    /// Asks three questions at once.
    #[tool]
    fn test_input_required_result_multiple_inputs(ctx: &Ctx) -> Result<String> {
        ask::three_at_once(ctx)
    }

    /// Asks in two rounds, with another state in each.
    #[tool]
    fn test_input_required_result_multi_round(ctx: &Ctx) -> Result<String> {
        ask::two_rounds(ctx)
    }

    /// Asks only what the client can answer.
    #[tool]
    fn test_input_required_result_capabilities(ctx: &Ctx) -> Result<String> {
        ask::what_the_client_can(ctx)
    }

    /// Greets, at once.
    #[tool]
    fn greet(
        /// Whom to greet.
        name: &str,
    ) -> String {
        format!("Hello, {name}!")
    }

    /// Takes its time.
    #[tool(task = "optional")]
    fn slow_compute(
        ctx: &Ctx,
        /// How long.
        #[arg(default = 1.0, min = 0, max = 3600)]
        seconds: f64,
        /// What to call the result.
        #[arg(default = "result")]
        label: &str,
    ) -> String {
        jobs::wait(ctx, seconds);
        format!("{label}: done after {seconds} s")
    }

    /// Fails after a while, in a way that the model sees.
    #[tool(task = "required")]
    fn failing_job() -> Result<()> {
        sleep(PAUSE);
        bail!("This job intentionally fails")
    }

    /// Fails after a while, with an error of the protocol.
    #[tool(task = "required")]
    fn protocol_error_job() -> Result<()> {
        sleep(PAUSE);
        Err(guesthouse::Error::rpc(-31000, "This job intentionally fails"))
    }

    /// Asks before it deletes.
    #[tool(task = "required")]
    fn confirm_delete(
        ctx: &Ctx,
        /// What to delete; nothing is.
        #[arg(default = "file.txt")]
        filename: &str,
    ) -> Result<String> {
        jobs::confirm_delete(ctx, filename)
    }

    /// Asks two questions at once.
    #[tool(task = "required")]
    fn multi_input(ctx: &Ctx) -> Result<String> {
        jobs::two_questions(ctx)
    }

    /// Asks for a name first, and takes its time then.
    #[tool(task = "optional")]
    fn test_tool_with_task(ctx: &Ctx) -> Result<String> {
        let hello = ask::hello(ctx)?;
        jobs::wait(ctx, 1.0);
        Ok(hello)
    }

    /// A text that never changes.
    #[resource(uri = "test://static-text", title = "Static text", mime = "text/plain")]
    fn static_text() -> &'static str {
        "This is the content of the static text resource."
    }

    /// An image that never changes.
    #[resource(uri = "test://static-binary", title = "Static image", mime = "image/png")]
    fn static_binary() -> &'static [u8] {
        content::PIXEL
    }

    /// A text to watch.
    #[resource(uri = "test://watched-resource", title = "Watched text")]
    fn watched_resource() -> &'static str {
        "This resource can be watched."
    }

    /// Data of an id.
    #[template(uri = "test://template/{id}/data", title = "Data by id")]
    fn template_data(id: &str) -> Json<TemplateData> {
        Json(TemplateData { id: id.into(), template_test: true, data: format!("Data for ID: {id}") })
    }

    #[subscribe]
    fn watch(_uri: &str) {}

    /// A prompt without arguments.
    #[prompt]
    fn test_simple_prompt() -> &'static str {
        "This is a simple prompt for testing."
    }

    /// A prompt with two arguments.
    #[prompt]
    fn test_prompt_with_arguments(
        /// The first.
        #[arg(complete = ["paris", "park", "party"])]
        arg1: &str,
        /// The second.
        arg2: &str,
    ) -> String {
        format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    }

    /// A prompt with a resource in it.
    #[prompt]
    fn test_prompt_with_embedded_resource(
        /// Which one.
        #[arg(name = "resourceUri")]
        resource_uri: &str,
    ) -> Vec<Message> {
        let body = Body::Text("Embedded resource content for testing.".into());
        let contents = ResourceContents { uri: resource_uri.into(), mime_type: Some("text/plain".into()), body, meta: None };
        vec![Message::new(Role::User, Content::embed(contents)), Message::user("Please process the embedded resource above.")]
    }

    /// A prompt with an image in it.
    #[prompt]
    fn test_prompt_with_image() -> Vec<Message> {
        vec![Message::new(Role::User, content::image()), Message::user("Please analyze the image above.")]
    }

    /// A prompt that asks the user for its context.
    #[prompt]
    fn test_input_required_result_prompt(ctx: &Ctx) -> Result<String> {
        ask::context(ctx)
    }
}

#[cfg(test)]
mod tests;
