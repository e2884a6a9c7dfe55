//! Descriptions of the types and fields of Kubernetes' API.
//!
//! The build script takes them from the sources of the `k8s-openapi` crate. The program contains one compressed block
//! per package; [`Descriptions`] decompresses the blocks that it is asked for and frees them when it is dropped.
//!
//! ```
//! let descriptions = scantling_descriptions::Descriptions::new();
//! let replicas = descriptions.get("io.k8s.api.apps.v1.DeploymentSpec", Some("replicas"));
//! assert!(replicas.is_some_and(|text| text.starts_with("Number of desired pods.")));
//! assert!(descriptions.get("io.k8s.api.apps.v1.Deployment", None).is_some());
//! assert!(descriptions.get("com.example.v1.Widget", None).is_none());
//! ```

use std::cell::OnceCell;

/// The compressed blocks, sorted by package.
static BLOCKS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/blocks.in"));

/// Descriptions, decompressed by package on first use.
#[derive(Debug)]
pub struct Descriptions(Vec<OnceCell<Package>>);

/// The descriptions of a package: records of type, field and text, sorted by type and field.
#[derive(Debug)]
struct Package {
    text: String,
    /// Where each record starts, and where its type, its field and the record itself end.
    records: Vec<[usize; 4]>,
}

impl Default for Descriptions {
    fn default() -> Self {
        Descriptions::new()
    }
}

impl Descriptions {
    /// Returns descriptions whose blocks are decompressed on first use.
    pub fn new() -> Descriptions {
        Descriptions(BLOCKS.iter().map(|_| OnceCell::new()).collect())
    }

    /// Returns the description of a type by its OpenAPI name (`io.k8s.api.apps.v1.Deployment`), or of one of its fields.
    pub fn get(&self, model: &str, field: Option<&str>) -> Option<&str> {
        let (package, ty) = model.rsplit_once('.')?;
        let at = BLOCKS.binary_search_by(|(name, _)| (*name).cmp(package)).ok()?;
        let (_, block) = BLOCKS.get(at)?;
        let package = self.0.get(at)?.get_or_init(|| Package::decompress(block));
        package.get(ty, field.unwrap_or_default())
    }
}

impl Package {
    #[expect(
        clippy::expect_used,
        reason = "the build script made the block, and a test decompresses all of them"
    )]
    fn decompress(block: &[u8]) -> Package {
        let bytes = lz4_flex::decompress_size_prepended(block).expect("a block of descriptions");
        let text = String::from_utf8(bytes).expect("a block of descriptions is UTF-8");
        let mut start = 0;
        let record = |record: &str| {
            let mut parts = record.splitn(3, '\u{1f}').map(str::len);
            let ty = start + parts.next().unwrap_or_default();
            let field = ty + 1 + parts.next().unwrap_or_default();
            let spans = [start, ty, field, start + record.len()];
            start += record.len() + 1;
            spans
        };
        let records = text.split('\u{1e}').map(record).collect();
        Package { text, records }
    }

    fn get(&self, ty: &str, field: &str) -> Option<&str> {
        let part = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        let found = self.records.binary_search_by(|[start, ty_end, field_end, _]| {
            (part(*start, *ty_end), part(*ty_end + 1, *field_end)).cmp(&(ty, field))
        });
        let [_, _, field_end, end] = self.records.get(found.ok()?)?;
        Some(part(field_end + 1, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_decompresses_in_order() {
        assert!(BLOCKS.len() > 40, "{} packages", BLOCKS.len());
        let mut count = 0;
        for (name, block) in BLOCKS {
            let package = Package::decompress(block);
            assert!(
                package
                    .records
                    .is_sorted_by_key(|[start, _, end, _]| package.text.get(*start..*end)),
                "{name}"
            );
            count += package.records.len();
        }
        assert!(count > 3_500, "{count} descriptions");
    }

    #[test]
    fn literals_are_unescaped() {
        let descriptions = Descriptions::new();
        let template = descriptions.get("io.k8s.api.apps.v1.DeploymentSpec", Some("template"));
        assert!(
            template.is_some_and(|text| text.ends_with("is \"Always\".")),
            "{template:?}"
        );
        let event = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
        assert_eq!(
            descriptions.get(event, None),
            Some("Event represents a single event to a watched resource.")
        );
        assert!(
            descriptions
                .get(event, Some("object"))
                .is_some_and(|text| text.starts_with("Object is:\n * "))
        );
    }
}
