//! The defaults of CRDs.

use super::{ApiVersion, Conversion, CrdVersion, Definition, Spec};

impl Definition {
    /// Sets the defaults of a version of the kind.
    pub(super) fn set_defaults(&mut self, api: ApiVersion) {
        self.spec.set_defaults(api);
        if self.status.stored_versions.is_empty()
            && let Some(v) = self.spec.storage_version()
        {
            self.status.stored_versions.push(v.name.clone());
        }
    }
}

impl Spec {
    fn set_defaults(&mut self, api: ApiVersion) {
        let beta = api == ApiVersion::V1Beta1;
        if beta && self.scope.is_empty() {
            self.scope = "Namespaced".into();
        }
        let names = &mut self.names;
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind).into();
        }
        if beta {
            // In `v1beta1`, `version` and `versions` complete each other.
            if self.versions().is_empty() && !self.version.is_empty() {
                let only = CrdVersion {
                    name: self.version.clone(),
                    served: true,
                    storage: true,
                    ..CrdVersion::default()
                };
                self.versions = Some(vec![only]);
            }
            if self.version.is_empty()
                && let Some(first) = self.versions().first()
            {
                self.version = first.name.clone();
            }
            self.preserve_unknown_fields.get_or_insert(true);
        }
        let conversion = self.conversion.get_or_insert_with(|| Conversion {
            strategy: "None".into(),
            ..Conversion::default()
        });
        if beta
            && conversion.strategy == "Webhook"
            && conversion.review_versions.as_ref().is_none_or(Vec::is_empty)
        {
            conversion.review_versions = Some(vec!["v1beta1".into()]);
        }
        if let Some(service) = conversion.client.as_mut().and_then(|c| c.service.as_mut()) {
            service.port.get_or_insert(443);
        }
    }
}
