//! JSON schemas for kinds without a CRD, from catalogs in the layout of kubeconform and flux-schema.
//!
//! Such schemas have no CEL rules, no defaults and no pruning: an object that they accept may still be refused by a cluster.

use crate::files;
use crate::problem::Problem;
use crate::tools;
use jsonschema::Validator as JsonValidator;
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::names::group_version;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// kubeconform's catalog, which `default` refers to.
const DEFAULT: &str = "https://raw.githubusercontent.com/yannh/kubernetes-json-schema/master/\
     {{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}/{{.ResourceKind}}{{.KindSuffix}}.json";
/// The layout below a directory or URL that is not a template.
const LAYOUT: &str =
    "{{.NormalizedKubernetesVersion}}-standalone{{.StrictSuffix}}/{{.ResourceKind}}{{.KindSuffix}}.json";
/// The size limit of a schema.
const MAX_SCHEMA_BYTES: u64 = 16 << 20;

/// The catalogs, and the schemas that have been loaded.
#[derive(Debug)]
pub(crate) struct JsonSchemas {
    templates: Vec<String>,
    cache: Option<PathBuf>,
    version: KubernetesVersion,
    loaded: Mutex<BTreeMap<String, Option<Arc<JsonValidator>>>>,
}

/// An error of a JSON schema.
#[derive(Debug)]
pub(crate) struct JsonSchemaError {
    /// The path of the value as a JSON pointer.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl JsonSchemas {
    pub(crate) fn new(locations: &[String], cache: Option<&Path>, version: KubernetesVersion) -> Self {
        let template = |location: &String| match location.as_str() {
            "default" => DEFAULT.to_owned(),
            location if location.contains("{{") || location.ends_with(".json") => location.to_owned(),
            directory => format!("{}/{LAYOUT}", directory.trim_end_matches('/')),
        };
        JsonSchemas {
            templates: locations.iter().map(template).collect(),
            cache: cache.map(Path::to_owned),
            version,
            loaded: Mutex::new(BTreeMap::new()),
        }
    }

    /// Returns the schema of a kind from the first catalog that has it.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Result<Option<Arc<JsonValidator>>, Problem> {
        for template in &self.templates {
            let location = expand(template, api_version, kind, self.version);
            // The lock is held during loading, because other threads probably need the same schema.
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            // That a catalog lacks a schema is kept as well, so it is asked once per kind.
            if !loaded.contains_key(&location) {
                let validator = self.load(&location)?.map(Arc::new);
                loaded.insert(location.clone(), validator);
            }
            if let Some(Some(validator)) = loaded.get(&location) {
                return Ok(Some(Arc::clone(validator)));
            }
        }
        Ok(None)
    }

    fn load(&self, location: &str) -> Result<Option<JsonValidator>, Problem> {
        let bytes = if location.starts_with("https://") || location.starts_with("http://") {
            self.download(location)?
        } else {
            match files::read(Path::new(location), MAX_SCHEMA_BYTES) {
                Ok(bytes) => Some(bytes),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
                Err(e) => return Err(files::unreadable(location, &e)),
            }
        };
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let invalid =
            |why: &dyn std::fmt::Display| Problem::new(format!("the schema {location} cannot be used"), why);
        let schema: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| invalid(&e))?;
        let validator = jsonschema::validator_for(&schema).map_err(|e| invalid(&e))?;
        Ok(Some(validator))
    }

    /// Returns a downloaded schema, from the cache if it is there, or `None` if the catalog does not have it.
    fn download(&self, url: &str) -> Result<Option<Vec<u8>>, Problem> {
        let cached = self
            .cache
            .as_ref()
            .map(|directory| directory.join(cache_name(url)));
        // A file that cannot be read is downloaded again, and replaced.
        if let Some(file) = &cached
            && let Ok(bytes) = files::read(file, MAX_SCHEMA_BYTES)
        {
            return Ok(Some(bytes));
        }
        let arguments = [
            "--silent",
            "--show-error",
            "--location",
            "--max-time",
            "30",
            "--write-out",
            "%{http_code}",
            url,
        ];
        let mut bytes = tools::output("curl", &arguments, MAX_SCHEMA_BYTES)
            .map_err(|problem| problem.hint("URLs of --schema-location are downloaded with curl"))?;
        // `--write-out` appends three digits to the body.
        let status = bytes.split_off(bytes.len().saturating_sub(3));
        match status.as_slice() {
            b"200" => {}
            b"404" => return Ok(None),
            status => {
                let status = String::from_utf8_lossy(status).into_owned();
                return Err(Problem::plain(format!(
                    "cannot download {url}: the server answers with status {status}"
                )));
            }
        }
        if let Some(file) = cached {
            let failed = |e| Problem::new(format!("cannot write {}", file.display()), e);
            if let Some(directory) = file.parent() {
                std::fs::create_dir_all(directory).map_err(failed)?;
            }
            std::fs::write(&file, &bytes).map_err(failed)?;
        }
        Ok(Some(bytes))
    }
}

/// The name of the file with the schema of a URL. Different URLs have different names.
fn cache_name(url: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let encode = |b: u8| match is_plain(b) {
        true => char::from(b).to_string(),
        false => format!("_{b:02x}"),
    };
    url.bytes().map(encode).collect()
}

/// Validates an object.
pub(crate) fn validate(schema: &JsonValidator, object: &Value) -> Result<Vec<JsonSchemaError>, Problem> {
    // Both libraries have their own type for JSON; the text is what they share.
    let json: serde_json::Value = serde_json::from_str(&object.to_json())
        .map_err(|e| Problem::new("cannot pass an object to a JSON schema", e))?;
    let errors = schema.iter_errors(&json).map(|e| JsonSchemaError {
        pointer: e.instance_path().to_string(),
        message: e.to_string(),
    });
    Ok(errors.collect())
}

/// Fills in a template.
fn expand(template: &str, api_version: &str, kind: &str, version: KubernetesVersion) -> String {
    let (group, resource_version) = group_version(api_version);
    // kubeconform uses the first part of a group's name only.
    let short = group.split('.').next().unwrap_or_default();
    let suffix = match short {
        "" => format!("-{resource_version}"),
        group => format!("-{group}-{resource_version}"),
    };
    let kind = kind.to_ascii_lowercase();
    let kubernetes = format!("v{}.{}.0", version.major, version.minor);
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(match name.trim().trim_start_matches('.') {
            "NormalizedKubernetesVersion" => &kubernetes,
            "StrictSuffix" => "-strict",
            "ResourceKind" => &kind,
            "ResourceAPIVersion" => resource_version,
            "Group" => group,
            "KindSuffix" => &suffix,
            _ => "",
        });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, JsonSchemas, cache_name, expand, validate};
    use scantling_cel::kubernetes::KubernetesVersion;
    use scantling_value::{Limits, yaml};

    const VERSION: KubernetesVersion = KubernetesVersion::new(1, 36);

    #[test]
    fn cached_schemas_of_different_urls_have_different_names() {
        assert_eq!(cache_name("https://a.b/c-d_e"), "https_3a_2f_2fa.b_2fc-d_5fe");
        assert_ne!(cache_name("a/b"), cache_name("a_b"));
        assert_ne!(cache_name("a_2fb"), cache_name("a/b"));
    }

    #[test]
    fn templates_are_those_of_kubeconform() {
        let cases = [
            (
                "schemas/{{ .Group }}/{{.ResourceKind}}_{{ .ResourceAPIVersion }}.json",
                "schemas/example.com/widget_v1.json",
            ),
            ("{{.ResourceKind}}{{.KindSuffix}}.json", "widget-example-v1.json"),
        ];
        for (template, wanted) in cases {
            assert_eq!(expand(template, "example.com/v1", "Widget", VERSION), wanted);
        }
        let default = expand(DEFAULT, "v1", "Pod", VERSION);
        assert!(
            default.ends_with("/v1.36.0-standalone-strict/pod-v1.json"),
            "{default}"
        );
    }

    #[test]
    fn objects_are_validated() {
        let directory = tempfile::tempdir().unwrap();
        let schema =
            r#"{"type": "object", "properties": {"spec": {"properties": {"size": {"type": "integer"}}}}}"#;
        std::fs::write(directory.path().join("widget_v1.json"), schema).unwrap();
        let template = format!(
            "{}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json",
            directory.path().display()
        );
        let schemas = JsonSchemas::new(&[template], None, VERSION);
        assert!(schemas.find("example.com/v1", "Other").unwrap().is_none());
        let schema = schemas.find("example.com/v1", "Widget").unwrap().unwrap();
        let object = yaml::decode(b"spec: {size: x}", Limits::SAFE).unwrap();
        let errors = validate(&schema, &object).unwrap();
        let errors: Vec<String> = errors
            .iter()
            .map(|e| format!("{}: {}", e.pointer, e.message))
            .collect();
        assert_eq!(errors, ["/spec/size: \"x\" is not of type \"integer\""]);
    }
}
