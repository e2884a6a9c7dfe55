//! Findings and errors of decoding.
