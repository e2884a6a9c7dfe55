//! The write pipeline of a custom resource as one pure function.
