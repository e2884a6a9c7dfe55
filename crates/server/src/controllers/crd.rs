//! The CRD controller: follows the store, updates the status of each CRD, and serves its kind.
//!
//! Every server runs one over the same store. All decisions are functions of the existing CRDs, and every
//! write is conditional, so servers need no leader election.

mod cleanup;

pub(crate) use cleanup::{CLEANUP, delete_all, pause_after, terminating};

use crate::api::Api;
use crate::codec::text::Stored;
use crate::http::compute;
use crate::kinds::custom;
use crate::kinds::definitions::{self, GROUP, PLURAL};
use crate::kinds::kind::{Kinds, ServedIncarnation};
use crate::rest::entry_cache::EntryFacts;
use crate::rest::managed_fields;
use crate::rest::write::timestamp;
use scantling_merge::apply::TypeCheck;
use scantling_schema::definition::{ApiVersion, Definition, Names, Status};
use scantling_store::{Entry, EntryChange, Event, ListRequest, ReadAt, StoreError, Write};
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The pause before a failing store is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A CRD as last seen.
struct Seen {
    /// Its names only; the rest stays in the store.
    outline: Definition,
    entry: Arc<Entry>,
}

/// The state of the controller.
pub(crate) struct Controller {
    api: Arc<Api>,
    seen: BTreeMap<String, Seen>,
    served: BTreeMap<String, Served>,
    /// The CRDs being deleted whose objects are being deleted.
    leaving: BTreeMap<String, JoinHandle<()>>,
}

/// The facts about a CRD that decide whether its kind is unchanged, and since when.
struct Served {
    uid: String,
    /// Incremented with every change to the specification.
    generation: i64,
    names: Names,
    incarnation: ServedIncarnation,
}

impl Served {
    fn new(definition: &Definition, incarnation: ServedIncarnation) -> Served {
        let metadata = &definition.metadata;
        let uid = metadata.get_str("uid");
        let generation = metadata.get("generation").and_then(Value::as_int).unwrap_or(0);
        // A deletion increments the generation without changing the specification.
        let deletions = i64::from(metadata.get("deletionTimestamp").is_some());
        Served {
            uid: uid.to_owned(),
            generation: generation - deletions,
            names: definition.status.accepted_names.clone(),
            incarnation,
        }
    }

    fn is_still(&self, other: &Served) -> bool {
        (&self.uid, self.generation, &self.names) == (&other.uid, other.generation, &other.names)
    }
}

impl Controller {
    /// Reads all CRDs and serves the established ones.
    pub(crate) async fn start(api: Arc<Api>) -> Result<(Controller, u64), StoreError> {
        let mut controller = Controller {
            api,
            seen: BTreeMap::new(),
            served: BTreeMap::new(),
            leaving: BTreeMap::new(),
        };
        let revision = controller.read_all().await?;
        Ok((controller, revision))
    }

    async fn read_all(&mut self) -> Result<u64, StoreError> {
        let api = Arc::clone(&self.api);
        let prefix = api.keys.collection(GROUP, PLURAL)?;
        let request = ListRequest {
            prefix,
            at: ReadAt::Latest,
            ..ListRequest::default()
        };
        let page = api.store.list(request).await?;
        self.seen.clear();
        let mut waiting = Vec::new();
        for entry in &page.entries {
            let Some(definition) = self.take_and_serve(entry) else {
                continue;
            };
            if definition.has_its_names() {
                self.reconcile(definition, entry).await;
            } else {
                // Free names are known only once all CRDs are read.
                waiting.push(entry);
            }
        }
        for entry in waiting {
            self.reconcile_again(entry).await;
        }
        Ok(page.revision)
    }

    /// Follows the store until the server stops.
    pub(crate) async fn run(mut self, mut revision: u64) {
        let mut stop = self.api.stop.clone();
        loop {
            tokio::select! {
                () = self.follow(&mut revision) => {}
                _ = stop.wait_for(|s| *s) => return,
            }
            // The watch ended: read everything again.
            tokio::time::sleep(PAUSE).await;
            match self.read_all().await {
                Ok(r) => revision = r,
                Err(e) => tracing::warn!(error = %e, "cannot read definitions"),
            }
        }
    }

    async fn follow(&mut self, revision: &mut u64) {
        let api = Arc::clone(&self.api);
        let watch = match api.keys.collection(GROUP, PLURAL) {
            Ok(prefix) => api.store.watch(&prefix, *revision).await,
            Err(e) => Err(e),
        };
        let mut watch = match watch {
            Ok(w) => w,
            Err(e) => {
                tracing::warn!(error = %e, "cannot watch definitions");
                return;
            }
        };
        loop {
            match watch.next().await {
                Ok(event) => {
                    self.event(&event).await;
                    *revision = event.revision;
                    // Also after an event that was skipped: the barrier waits for its revision.
                    api.crds.applied(event.revision);
                }
                Err(e) => {
                    tracing::warn!(error = %e, "the watch on definitions ended");
                    return;
                }
            }
        }
    }

    async fn event(&mut self, event: &Event) {
        match &event.change {
            EntryChange::Create { new } | EntryChange::Update { new, .. } => {
                let name = name_in(&new.key);
                // CRDs that this server wrote need not be decoded again.
                if self
                    .seen
                    .get(name)
                    .is_some_and(|s| s.entry.mod_revision >= new.mod_revision)
                {
                    return;
                }
                if let Some(definition) = self.take_and_serve(new) {
                    self.reconcile(definition, new).await;
                }
            }
            EntryChange::Delete { old } => {
                let name = name_in(&old.key);
                // Dropping the handle detaches the task, which ends by itself: it no longer finds the CRD.
                self.leaving.remove(name);
                if let Some(gone) = self.seen.remove(name) {
                    let spec = &gone.outline.spec;
                    self.withdraw(&gone.outline);
                    // Names may be free now.
                    self.reconcile_group(&spec.group).await;
                }
            }
        }
    }

    fn take_and_serve(&mut self, entry: &Arc<Entry>) -> Option<Definition> {
        compute::in_place(entry.value.len(), || {
            let definition = self.decode_and_remember(entry)?;
            self.serve(&definition, entry);
            Some(definition)
        })
    }

    /// Remembers a definition, and returns it without the schemas that nothing here depends on.
    fn decode_and_remember(&mut self, entry: &Arc<Entry>) -> Option<Definition> {
        let api = &self.api;
        let kinds = api.kinds.load();
        let pending = kinds
            .get(GROUP, PLURAL)
            .and_then(|kind| api.pending.take(kind, entry));
        let read = match pending {
            Some(definition) => Ok(definition),
            None => definitions::decode(entry, api.compiler.gates),
        };
        match read {
            Ok(definition) => {
                self.remember(&definition, entry);
                Some(definition)
            }
            Err(e) => {
                unreadable(entry, &e);
                None
            }
        }
    }

    fn remember(&mut self, definition: &Definition, entry: &Arc<Entry>) {
        let seen = Seen {
            // Thousands of CRDs stay in memory this way, so their schemas are left out.
            outline: definition.without_schema_details(),
            entry: Arc::clone(entry),
        };
        self.seen.insert(definition.name().to_owned(), seen);
    }

    /// Serves the kind of a CRD, if it is established.
    fn serve(&mut self, definition: &Definition, entry: &Arc<Entry>) {
        if !definition.has_condition("Established") {
            self.withdraw(definition);
            return;
        }
        let mut now = Served::new(definition, ServedIncarnation::since(entry.mod_revision));
        let before = self.served.remove(definition.name());
        let replaced = match before {
            Some(before) if before.is_still(&now) => {
                now.incarnation = before.incarnation;
                None
            }
            other => other,
        };
        // The kind is made again even if it is unchanged: its entry and its compiled versions follow the new text.
        let incarnation = now.incarnation.clone();
        let kind = Arc::new(custom::kind(definition, entry, &self.api.compiler, incarnation));
        self.api.publish(|k| k.insert(Arc::clone(&kind)));
        self.served.insert(definition.name().to_owned(), now);
        // After the new kind is served: a client that reconnects at once must find it.
        if let Some(old) = replaced {
            old.incarnation.end();
        }
    }

    /// Stops serving the kind of a CRD.
    fn withdraw(&mut self, definition: &Definition) {
        let spec = &definition.spec;
        self.api.publish(|k| k.remove(&spec.group, &spec.names.plural));
        if let Some(served) = self.served.remove(definition.name()) {
            served.incarnation.end();
        }
    }

    async fn reconcile_group(&mut self, group: &str) {
        let in_group = |s: &&Seen| s.outline.spec.group == group && !s.outline.has_its_names();
        let waiting: Vec<Arc<Entry>> = self
            .seen
            .values()
            .filter(in_group)
            .map(|s| Arc::clone(&s.entry))
            .collect();
        for entry in waiting {
            self.reconcile_again(&entry).await;
        }
    }

    /// Reconciles a CRD that was seen before.
    async fn reconcile_again(&mut self, entry: &Arc<Entry>) {
        if let Some(definition) = compute::in_place(entry.value.len(), || self.decode_and_remember(entry)) {
            self.reconcile(definition, entry).await;
        }
    }

    /// Writes the status of a CRD if it changed, and continues its deletion.
    async fn reconcile(&mut self, mut definition: Definition, entry: &Arc<Entry>) {
        if definition.metadata.get("deletionTimestamp").is_some() {
            self.clean_up(&definition);
            return;
        }
        let group = definition.spec.group.clone();
        let group = self
            .seen
            .values()
            .map(|s| &s.outline)
            .filter(|d| d.spec.group == group);
        let before = definition.status.clone();
        // Decides for all servers alike: the one that writes first wins, and the others find nothing left to do.
        if !definition.update_conditions(group, &timestamp()) {
            return;
        }
        let name = definition.name();
        let api = &self.api;
        let settled = compute::in_place(entry.value.len(), || {
            if let Some(settled) = StatusUpdate::keeping(api, entry, &definition, before.clone()) {
                return Ok(settled);
            }
            let stored = definitions::decode(entry, api.compiler.gates)?;
            let status = definition.status.clone();
            Ok(StatusUpdate::whole(api, &Definition { status, ..stored }, before))
        });
        let settled = match settled {
            Ok(settled) => settled,
            Err(why) => {
                let why: String = why;
                return unreadable(entry, &why);
            }
        };
        match settled.write(api, name, entry.mod_revision).await {
            Ok(event) => {
                if let Some(entry) = event.after() {
                    self.remember(&definition, entry);
                    self.serve(&definition, entry);
                }
            }
            // The watch delivers the newer state, which is reconciled then.
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {}
            Err(e) => {
                tracing::warn!(name, error = %e, "cannot write the status of a definition");
            }
        }
    }

    /// Deletes the objects of a CRD being deleted, unless that is running or done.
    fn clean_up(&mut self, definition: &Definition) {
        let name = definition.name();
        if !cleanup::is_due(definition) || self.leaving.get(name).is_some_and(|t| !t.is_finished()) {
            return;
        }
        // A task of its own: deleting many objects must not hold up the events of other CRDs.
        let task = tokio::spawn(cleanup::run(Arc::clone(&self.api), name.to_owned()));
        self.leaving.insert(name.to_owned(), task);
    }
}

/// The object name in a key: the last segment.
fn name_in(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

fn unreadable(entry: &Entry, why: &str) {
    tracing::error!(key = %entry.key, error = why, "a stored definition cannot be read");
}

/// Writes a complete definition with a new status.
async fn write(
    api: &Api,
    definition: &Definition,
    before: Status,
    expected: u64,
) -> Result<Event, StoreError> {
    let settled = StatusUpdate::whole(api, definition, before);
    settled.write(api, definition.name(), expected).await
}

/// The text of a CRD with a new status.
struct StatusUpdate {
    stored: Stored,
    /// True if it is known to be served as stored.
    in_form: bool,
}

impl StatusUpdate {
    /// The text of a complete definition.
    fn whole(api: &Api, definition: &Definition, before: Status) -> StatusUpdate {
        let (_, outside) = Self::outside_of_spec(api, definition, before);
        let mut object = definition.encode(ApiVersion::V1);
        managed_fields::set_entries(&mut object, managed_fields::entries(&outside).to_vec());
        StatusUpdate {
            stored: Stored::whole(&object),
            in_form: true,
        }
    }

    /// The text of an entry with a new status, all else unchanged: the specification is not even decoded.
    /// `None` if another server wrote it in a different format.
    fn keeping(api: &Api, entry: &Entry, definition: &Definition, before: Status) -> Option<StatusUpdate> {
        let (live, settled) = Self::outside_of_spec(api, definition, before);
        let text = entry.value.bytes();
        let kinds = api.kinds.load();
        Some(StatusUpdate {
            stored: Stored::keeping("spec", &text, &live, &settled)?,
            in_form: EntryFacts::get(kinds.get(GROUP, PLURAL)?, entry).is_some(),
        })
    }

    /// The document of a CRD with its old and its new status, both without the specification. Only the status
    /// and its managers change, so nothing else needs comparing.
    fn outside_of_spec(api: &Api, definition: &Definition, before: Status) -> (Value, Value) {
        let with = |status: Status| {
            let outside = Definition {
                metadata: definition.metadata.clone(),
                status,
                ..Definition::default()
            };
            outside.into_document(ApiVersion::V1)
        };
        let (live, settled) = (with(before), with(definition.status.clone()));
        let kinds = api.kinds.load();
        let kind = kinds.get(GROUP, PLURAL);
        match kind.and_then(|kind| Some((kind, kind.versions.first()?))) {
            Some((kind, version)) => {
                let settled = managed_fields::after_own_status(kind, version, &live, settled);
                (live, settled)
            }
            None => (live, settled),
        }
    }

    async fn write(self, api: &Api, name: &str, expected: u64) -> Result<Event, StoreError> {
        let key = api.keys.object(GROUP, PLURAL, None, name)?;
        let Stored { value, place, .. } = self.stored;
        let event = api.store.write(&key, Write::Update { value, expected }).await?;
        if let (Some(kind), Some(entry)) = (api.kinds.load().get(GROUP, PLURAL), event.after())
            && self.in_form
        {
            EntryFacts::set(kind, entry, place, TypeCheck::Unknown);
        }
        Ok(event)
    }
}

impl Api {
    /// Updates the served kinds.
    fn publish(&self, update: impl Fn(&mut Kinds)) {
        // The closure may run again, so it only changes its clone.
        self.kinds.rcu(|kinds| {
            let mut next = Kinds::clone(kinds);
            update(&mut next);
            next
        });
    }
}
