//! The storage seam: embedded, etcd and in-memory engines behind one contract.
