//! Authentication, impersonation and authorization of a request.

use super::Api;
use crate::auth::authentication::{Credential, User};
use crate::auth::authorization::{Attributes, decide};
use crate::auth::impersonation::impersonated;
use crate::http::reply::Reply;
use crate::status::{ApiError, ApiResult};
use hyper::header::{self, HeaderMap};
use std::sync::Arc;

/// The user of a request and the authorization decision.
#[derive(Debug)]
pub(super) struct Access {
    /// The effective user; `None` if the credential was rejected.
    pub(super) user: Option<Arc<User>>,
    /// The user that impersonates the effective user.
    pub(super) impersonator: Option<Arc<User>>,
    pub(super) verdict: ApiResult<()>,
}

impl Access {
    /// The names of both users, for the log.
    pub(super) fn names(&self) -> (&str, &str) {
        let [user, impersonator] =
            [&self.user, &self.impersonator].map(|user| user.as_ref().map_or("", |user| &user.name));
        (user, impersonator)
    }
}

impl Api {
    pub(super) fn access(
        &self,
        credential: Credential,
        headers: &HeaderMap,
        attributes: &Attributes<'_>,
    ) -> Access {
        let user = match (credential, &self.anonymous) {
            (Credential::Accepted(user), _) => Some(user),
            (Credential::Absent, Some(anonymous)) => Some(Arc::clone(anonymous)),
            (Credential::Absent, None) | (Credential::Rejected, _) => None,
        };
        self.metrics.authenticated(user.is_some());
        let Some(user) = user else {
            return Access {
                user: None,
                impersonator: None,
                verdict: Err(ApiError::unauthorized()),
            };
        };
        let (user, impersonator) = match impersonated(headers, self.authorization, &user, attributes) {
            Ok(None) => (user, None),
            Ok(Some(other)) => (Arc::new(other), Some(user)),
            Err(e) => {
                return Access {
                    user: Some(user),
                    impersonator: None,
                    verdict: Err(e),
                };
            }
        };
        // Decided for the effective user: impersonation gives up the rights of the requesting one.
        let verdict = decide(self.authorization, &user, attributes);
        Access {
            verdict: verdict.map_err(|reason| attributes.forbidden(&user, reason)),
            user: Some(user),
            impersonator,
        }
    }
}

/// Completes the reply to a refused request.
pub(super) fn refusal(e: &ApiError, reply: Reply) -> Reply {
    match e.code() {
        // kube-apiserver writes 401 by another path, without that header.
        401 => reply,
        _ => reply.with(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    }
}
