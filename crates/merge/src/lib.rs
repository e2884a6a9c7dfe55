//! JSON patch, merge patch, strategic merge patch and server-side apply, as pure functions.
