//! The four lists. Tools, prompts and templates come from the snapshot; resources are asked of the guests.

use super::cursor::Position;
use super::seat::Seat;
use super::trace::Subject;
use super::{Scope, bad_output, failed};
use crate::convert;
use crate::guest::Caller;
use crate::registry::Loaded;
use guesthouse_protocol::model::{PromptPage, Reply, ResourcePage, TemplatePage, ToolPage};
use guesthouse_protocol::{Failure, Outcome};
use std::sync::Arc;
use tracing::Instrument as _;

const TOOLS: &str = "tools/list";
const PROMPTS: &str = "prompts/list";
const TEMPLATES: &str = "resources/templates/list";
const RESOURCES: &str = "resources/list";

impl Scope<'_> {
    pub(super) fn list_tools(&self, cursor: Option<&str>) -> Outcome {
        let (entries, next_cursor) = self.page(TOOLS, &self.view.tools, cursor)?;
        Ok(Reply::Tools(ToolPage {
            tools: entries.iter().map(|tool| tool.listed.clone()).collect(),
            next_cursor,
            cache: self.view.hints.tools,
        }))
    }

    pub(super) fn list_prompts(&self, cursor: Option<&str>) -> Outcome {
        let (entries, next_cursor) = self.page(PROMPTS, &self.view.prompts, cursor)?;
        Ok(Reply::Prompts(PromptPage {
            prompts: entries.iter().map(|prompt| prompt.listed.clone()).collect(),
            next_cursor,
            cache: self.view.hints.prompts,
        }))
    }

    pub(super) fn list_templates(&self, cursor: Option<&str>) -> Outcome {
        let (entries, next_cursor) = self.page(TEMPLATES, &self.view.templates, cursor)?;
        Ok(Reply::Templates(TemplatePage {
            templates: entries.iter().map(Arc::clone).collect(),
            next_cursor,
            cache: self.view.hints.templates,
        }))
    }

    /// One page of a list that the host holds.
    fn page<'e, T>(&self, list: &str, entries: &'e [T], cursor: Option<&str>) -> Result<(&'e [T], Option<String>), Failure> {
        let start = match cursor.map(|cursor| self.open_cursor(list, cursor)).transpose()? {
            None => 0,
            Some(Position::Offset(offset)) => offset.min(entries.len()),
            Some(Position::Guest { .. }) => return Err(Failure::InvalidParams("Invalid cursor: it belongs to another list".into())),
        };
        let end = start.saturating_add(self.dispatcher.page_len).min(entries.len());
        let next = (end < entries.len()).then(|| self.seal_cursor(list, &Position::Offset(end))).flatten();
        Ok((entries.get(start..end).unwrap_or_default(), next))
    }

    /// Asks the guests in order, from where the cursor points, until a page is full; the cursor then leads to where it stopped.
    ///
    /// A guest's own page may be longer than the room that is left. Then the cursor leads into that page, which the guest is
    /// asked for again. A guest that fails does not take the others' resources away: on the merged endpoint it is logged and
    /// passed over.
    pub(super) async fn list_resources(&self, mut seat: impl FnMut() -> Seat, cursor: Option<&str>) -> Outcome {
        let (name, mut own_cursor, mut skip) = match cursor.map(|cursor| self.open_cursor(RESOURCES, cursor)).transpose()? {
            None => (None, None, 0),
            Some(Position::Guest { name, cursor, skip }) => (Some(name), cursor, skip),
            Some(Position::Offset(_)) => return Err(Failure::InvalidParams("Invalid cursor: it belongs to another list".into())),
        };
        let from = name.as_deref().unwrap_or_default();
        let guests: Vec<&Arc<Loaded>> = self.view.resource_guests().filter(|guest| &*guest.name >= from).collect();
        // The cursor's guest may be gone by now; its cursor means nothing to the one after it.
        if guests.first().is_none_or(|guest| &*guest.name != from) {
            (own_cursor, skip) = (None, 0);
        }
        let alone = self.view.resource_guests().nth(1).is_none();
        let mut continues = own_cursor.is_some();
        let mut answer = ResourcePage::default();
        for (index, guest) in guests.iter().enumerate() {
            let seat = seat();
            let span = seat.span(Subject::List(RESOURCES));
            let caller = span.in_scope(|| seat.of(self.voice(guest)));
            let page = match self.resource_page(guest, caller, own_cursor.clone()).instrument(span).await {
                Ok(page) => page,
                // Alone there is nobody else to list; and a cursor that the client brought is the client's to mend.
                Err(failure) if alone || (continues && matches!(failure, Failure::InvalidParams(_))) => return Err(failure),
                Err(failure) => {
                    tracing::warn!(guest = %guest.name, "its resources are left out of this list: {failure:?}");
                    (own_cursor, skip) = (None, 0);
                    continue;
                }
            };
            continues = false;
            let room = self.dispatcher.page_len.saturating_sub(answer.resources.len());
            let end = skip.saturating_add(room);
            let rest = page.resources.len() > end;
            answer.resources.extend(page.resources.into_iter().skip(skip).take(room));
            // A page that several guests make is as fresh as the host can promise: not at all.
            answer.cache = page.cache.filter(|_| alone);
            let next = |name: &str, cursor, skip| Position::Guest { name: name.to_owned(), cursor, skip };
            let position = match (page.next_cursor, guests.get(index + 1)) {
                _ if rest => next(&guest.name, own_cursor, end),
                (Some(cursor), _) => next(&guest.name, Some(cursor), 0),
                (None, Some(_)) if answer.resources.len() < self.dispatcher.page_len => {
                    (own_cursor, skip) = (None, 0);
                    continue;
                }
                (None, Some(following)) => next(&following.name, None, 0),
                (None, None) => break,
            };
            answer.next_cursor = self.seal_cursor(RESOURCES, &position);
            break;
        }
        Ok(Reply::Resources(answer))
    }

    /// One page of one guest, with the guest's own cursor.
    async fn resource_page(&self, guest: &Loaded, caller: Caller, cursor: Option<String>) -> Result<ResourcePage, Failure> {
        let page = guest.version.list_resources(caller, cursor).await.map_err(|failure| failed(guest, "list", RESOURCES, failure))?;
        let page = convert::resource_page(page).map_err(|bad| bad_output(guest, "list", RESOURCES, &bad.to_string()))?;
        guest.remember_uris(page.resources.iter().map(|resource| resource.uri.as_str()));
        Ok(page)
    }
}
