//! Patching.

use crate::reply::Reply;
use crate::status::{ApiError, ApiResult};
use crate::write::Write;

impl Write<'_> {
    /// PATCH
    pub(crate) async fn patch(&mut self, _name: &str) -> ApiResult<Reply> {
        Err(ApiError::internal("not yet"))
    }
}
