//! Our own server as a process of its own, with the example's definition and objects of its kind.

use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct TestServer {
    child: Child,
    pub(crate) address: String,
    pub(crate) kubeconfig: PathBuf,
    _directory: tempfile::TempDir,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let mut child = Command::new(env!("CARGO_BIN_EXE_scantling"))
            .args(["serve", "--in-memory", "--secure-port", "0", "--write-kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let serving = lines.next().unwrap().unwrap();
        lines.next().unwrap().unwrap();
        TestServer {
            child,
            address: serving.trim_start_matches("serving on ").to_owned(),
            kubeconfig,
            _directory: directory,
        }
    }

    /// Creates the example's definition and some objects; the first of them is the example's.
    pub(crate) fn fill(&self, objects: usize) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).unwrap();
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let client = kube::Client::try_from(config.unwrap()).unwrap();
            let create = async |path: &str, object: &Value| {
                let request = Request::new(path).create(&Default::default(), object.to_string().into_bytes());
                client.request_text(request.unwrap()).await
            };
            let definition = example("definition.yaml");
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            create(definitions, &definition).await.unwrap();
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}});
            create("/api/v1/namespaces", &namespace).await.unwrap();
            for n in 0..objects {
                let mut object = example("object.yaml");
                if n > 0 {
                    object["metadata"]["name"] = json!(format!("job-{n}"));
                    object["spec"]["replicas"] = json!(1);
                }
                // The kind is served soon after its definition is there.
                let mut tries = 0;
                while let Err(e) =
                    create("/apis/stable.example.com/v1/namespaces/jobs/crontabs", &object).await
                {
                    assert!(n == 0 && tries < 500, "{e}");
                    tries += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            }
        });
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn example(name: &str) -> Value {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab");
    let text = std::fs::read(directory.join(name)).unwrap();
    let value = scantling_value::yaml::decode(&text, scantling_value::Limits::SAFE).unwrap();
    serde_json::from_str(&value.to_json()).unwrap()
}
