use kube as _;
fn main() {}
