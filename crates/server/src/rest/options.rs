//! The options of requests, from queries and bodies, with kube-apiserver's errors.

use crate::request::Query;
use crate::rest::selector::{FieldSelector, LabelSelector};
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_admit::FieldValidation;
use scantling_value::{ErrorList, FieldError, Path, Value};

const META: &str = "meta.k8s.io";

/// The name of evictions in errors.
const EVICTION: GroupResource<'static> = GroupResource {
    group: "policy",
    kind: "Eviction",
};

fn refuse(kind: &'static str, errors: &[FieldError]) -> ApiResult<()> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(GroupResource { group: META, kind }, "", errors))
    }
}

/// The options that creating, updating and patching share.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) field_validation: FieldValidation,
    /// Only with apply.
    pub(crate) force: bool,
}

/// The kinds of writes, which differ in their options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WriteKind {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteOptions {
    /// Parses and checks options.
    pub(crate) fn parse(query: &Query, kind: WriteKind) -> ApiResult<WriteOptions> {
        let root = Path::ROOT;
        let mut errors = ErrorList::new();
        let manager = query.get_or_empty("fieldManager");
        let is_patch = matches!(kind, WriteKind::Patch | WriteKind::Apply);
        if kind == WriteKind::Apply {
            if manager.is_empty() {
                errors.push_with(|| {
                    FieldError::required(&root.field("fieldManager"), "is required for apply patch")
                });
            }
        } else if is_patch && query.has("force") {
            let why = "may not be specified for non-apply patch";
            errors.push_with(|| FieldError::forbidden(&root.field("force"), why));
        }
        check_manager(manager, &mut errors);
        let dry_run = check_dry_run(&query.all("dryRun"), &mut errors);
        let mode = query.get_or_empty("fieldValidation");
        let field_validation = match mode {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push_with(|| {
                    FieldError::not_supported(&root.field("fieldValidation"), other, supported)
                });
                // Not used: the error refuses the request.
                FieldValidation::Warn
            }
        };
        let name = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        };
        refuse(name, &errors)?;
        Ok(WriteOptions {
            dry_run,
            field_manager: manager.to_owned(),
            field_validation,
            force: kind == WriteKind::Apply && query.flag("force"),
        })
    }
}

fn check_manager(manager: &str, errors: &mut ErrorList) {
    let root = Path::ROOT;
    let at = root.field("fieldManager");
    // Go's `len`: bytes, not characters. The same holds for the positions below.
    if manager.len() > 128 {
        errors.push_with(|| FieldError::too_long(&at, 128));
    }
    for (i, c) in manager.char_indices() {
        if !scantling_value::go::is_print(c) {
            let shown = if c.is_control() {
                String::new()
            } else {
                format!(" '{c}'")
            };
            let why = format!(
                "invalid character U+{:04X}{shown} (at position {i})",
                u32::from(c)
            );
            errors.push_with(|| FieldError::invalid(&at, manager, why));
        }
    }
}

fn check_dry_run(values: &[&str], errors: &mut ErrorList) -> bool {
    let root = Path::ROOT;
    if values.iter().any(|v| *v != "All") {
        let shown: Vec<Value> = values.iter().map(|v| (*v).into()).collect();
        errors.push_with(|| FieldError::not_supported(&root.field("dryRun"), Value::Array(shown), ["All"]));
    }
    // An empty value is an error above, so what remains is `All`.
    !values.is_empty()
}

/// The treatment of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    /// The requested grace period in seconds.
    pub(crate) grace_period: Option<i64>,
    /// True if only an object that cannot be decoded is deleted.
    pub(crate) unreadable: bool,
    /// The errors about the options.
    errors: ErrorList,
}

const IGNORE_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// The error about [`IGNORE_ERRORS`].
fn ignores_errors(options: &Path<'_>, why: impl Into<String>) -> FieldError {
    FieldError::invalid(&options.field(IGNORE_ERRORS), Value::Bool(true), why.into())
}

impl DeleteOptions {
    /// Refuses options that a collection does not have.
    pub(crate) fn check_collection(&self) -> ApiResult<()> {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        match self.unreadable {
            true => refuse("DeleteOptions", &[ignores_errors(&Path::ROOT, why)]),
            false => Ok(()),
        }
    }

    /// Refuses options that an eviction does not have.
    pub(crate) fn check_eviction(&self, name: &str) -> ApiResult<()> {
        let why = "can not be set for pod eviction, try after removing the option";
        let error = || ignores_errors(&Path::ROOT.field("deleteOptions"), why);
        match self.unreadable {
            true => Err(ApiError::invalid(EVICTION, name, &[error()])),
            false => Ok(()),
        }
    }

    /// Parses the options of the body, or those of the query without a body. [`check`](Self::check) validates them.
    pub(crate) fn parse(query: &Query, body: Option<&Value>) -> ApiResult<DeleteOptions> {
        let text = |v: Option<&Value>| v.and_then(Value::as_str).map(str::to_owned);
        let (dry_run, uid, resource_version, has_preconditions, policy, orphan, unreadable, grace);
        match body {
            Some(b) => {
                let list = b.list("dryRun");
                dry_run = list
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect::<Vec<_>>();
                uid = text(b.at(["preconditions", "uid"]));
                resource_version = text(b.at(["preconditions", "resourceVersion"]));
                has_preconditions = b.get("preconditions").is_some_and(|p| *p != Value::Null);
                policy = text(b.get("propagationPolicy"));
                orphan = b.get("orphanDependents").and_then(Value::as_bool);
                grace = b.get("gracePeriodSeconds").and_then(Value::as_int);
                unreadable = b.get(IGNORE_ERRORS).and_then(Value::as_bool) == Some(true);
            }
            None => {
                grace = query.int("gracePeriodSeconds")?;
                dry_run = query.all("dryRun").into_iter().map(str::to_owned).collect();
                // An empty parameter is ignored, whereas an empty string in a body is a precondition.
                uid = query.get("uid").filter(|u| !u.is_empty()).map(str::to_owned);
                resource_version = query
                    .get("resourceVersion")
                    .filter(|v| !v.is_empty())
                    .map(str::to_owned);
                has_preconditions = uid.is_some() || resource_version.is_some();
                policy = query.get("propagationPolicy").map(str::to_owned);
                orphan = query
                    .has("orphanDependents")
                    .then(|| query.flag("orphanDependents"));
                unreadable = query.flag(IGNORE_ERRORS);
            }
        }
        let root = Path::ROOT;
        let at = root.field("propagationPolicy");
        let mut errors = ErrorList::new();
        // The checks keep kube-apiserver's order, because the message lists the errors in it.
        if let (Some(policy), Some(_)) = (policy.as_deref(), orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push_with(|| FieldError::invalid(&at, policy, why));
        }
        let propagation = match policy.as_deref() {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push_with(|| FieldError::not_supported(&at, other, supported));
                None
            }
        };
        let values: Vec<&str> = dry_run.iter().map(String::as_str).collect();
        let dry_run = check_dry_run(&values, &mut errors);
        if unreadable {
            let others = [
                ("propagationPolicy", policy.is_some()),
                ("orphanDependents", orphan.is_some()),
                ("gracePeriodSeconds", grace.is_some()),
                ("preconditions", has_preconditions),
            ];
            for (other, _) in others.iter().filter(|(_, given)| *given) {
                let why = format!("cannot be set together with .{other}");
                errors.push_with(|| ignores_errors(&root, why));
            }
        }
        Ok(DeleteOptions {
            dry_run,
            uid,
            resource_version,
            propagation,
            orphan_dependents: orphan,
            grace_period: grace,
            unreadable,
            errors,
        })
    }

    /// Refuses invalid options.
    pub(crate) fn check(&self) -> ApiResult<()> {
        refuse("DeleteOptions", &self.errors)
    }
}

/// The meaning of the resource version of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// The options of a list or watch.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) limit: i64,
    pub(crate) continue_token: String,
    /// True if a watch begins with the existing objects and a bookmark.
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Parses and checks options; `watch` is set for the old watch paths.
    pub(crate) fn parse(query: &Query, watch: bool) -> ApiResult<ListOptions> {
        let text = |name| query.get_or_empty(name).to_owned();
        let watch = watch || query.flag("watch");
        let timeout_seconds = query.int("timeoutSeconds")?;
        let limit = query.int("limit")?.unwrap_or(0);
        let labels = LabelSelector::parse(&text("labelSelector")).map_err(ApiError::bad_request)?;
        let fields = FieldSelector::parse(&text("fieldSelector")).map_err(ApiError::bad_request)?;
        let mut sends = query
            .has("sendInitialEvents")
            .then(|| query.flag("sendInitialEvents"));
        let resource_version = text("resourceVersion");
        let asked = text("resourceVersionMatch");
        let continue_token = text("continue");
        let mut version_match = match asked.as_str() {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        // A watch without a resource version begins with the existing objects.
        if watch && sends.is_none() && asked.is_empty() && matches!(resource_version.as_str(), "" | "0") {
            sends = Some(true);
            version_match = Some(VersionMatch::NotOlderThan);
        }

        let root = Path::ROOT;
        let at = root.field("resourceVersionMatch");
        let mut errors = ErrorList::new();
        let mut forbid = |why: &str| errors.push_with(|| FieldError::forbidden(&at, why));
        let given = !asked.is_empty() || version_match.is_some();
        if watch {
            // As above, in kube-apiserver's order.
            if sends.is_some() && version_match != Some(VersionMatch::NotOlderThan) {
                forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            if given {
                if sends.is_none() {
                    forbid(
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                    );
                }
                if version_match != Some(VersionMatch::NotOlderThan) {
                    errors.push_with(|| FieldError::not_supported(&at, asked.as_str(), ["NotOlderThan"]));
                }
                if !continue_token.is_empty() {
                    let why = "resourceVersionMatch is forbidden when continue is provided";
                    errors.push_with(|| FieldError::forbidden(&at, why));
                }
            }
        } else {
            if given {
                if resource_version.is_empty() {
                    forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
                }
                if !continue_token.is_empty() {
                    forbid("resourceVersionMatch is forbidden when continue is provided");
                }
                if version_match.is_none() {
                    let supported = ["Exact", "NotOlderThan", ""];
                    errors.push_with(|| FieldError::not_supported(&at, asked.as_str(), supported));
                } else if version_match == Some(VersionMatch::Exact) && resource_version == "0" {
                    forbid(r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#);
                }
            }
            if sends.is_some() {
                let at = root.field("sendInitialEvents");
                errors.push_with(|| FieldError::forbidden(&at, "sendInitialEvents is forbidden for list"));
            }
        }
        refuse("ListOptions", &errors)?;
        Ok(ListOptions {
            labels,
            fields,
            watch,
            bookmarks: query.flag("allowWatchBookmarks"),
            resource_version,
            version_match,
            timeout_seconds,
            limit,
            continue_token,
            send_initial_events: sends,
        })
    }
}
