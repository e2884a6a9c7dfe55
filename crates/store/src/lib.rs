//! Storage: embedded, etcd and in-memory engines behind one contract.
//!
//! A [`Store`] maps keys to bytes in one global sequence of revisions. It lists entries at one revision and streams
//! changes. Callers encode the values; [`KeySpace`] defines the layout of the keys.

mod backup;
mod cache;
mod compressed;
mod embedded;
mod error;
mod etcd;
mod history;
mod key;
mod mem;
pub mod private;
mod state;
mod store;
mod types;
mod watch;

pub use backup::{BackupError, BackupSummary, export};
pub use compressed::MaybeCompressed;
pub use embedded::{CheckReport, EmbeddedConfig, EmbeddedStore, FaultInjector, FaultKind, FileOperation};
pub use error::{Remedy, StoreError};
pub use etcd::{EtcdConfig, EtcdStore};
pub use history::HistoryLimits;
pub use key::{KeySpace, MAX_KEY_BYTES};
pub use mem::MemStore;
pub use store::{MAX_VALUE_BYTES, Store};
pub use types::{Entry, EntryChange, Event, ListRequest, Page, ReadAt, ReaderCache, Revision, Write};
pub use watch::Watch;
