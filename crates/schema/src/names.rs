//! The forms of names, which expressions know, too.

pub use scantling_cel::data::names::{
    dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value,
};
