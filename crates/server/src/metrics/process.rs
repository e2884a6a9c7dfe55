//! Metrics of the process, with the names that all Prometheus exporters use.

use procfs::process::{LimitValue, Process as Seen};
use procfs::{ProcResult, boot_time_secs, page_size, ticks_per_second};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Reads `/proc` on each scrape; values that it lacks are omitted.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // A scrape must not fail because `/proc` cannot be read.
        let Ok(facts) = ProcessFacts::now() else {
            return Ok(());
        };
        let seconds = ConstCounter::new(facts.cpu_seconds);
        let described = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Time on processors, in user and system mode.",
            None,
            seconds.metric_type(),
        )?;
        seconds.encode(described)?;
        for (name, help, value) in facts.gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

struct ProcessFacts {
    cpu_seconds: f64,
    gauges: [(&'static str, &'static str, f64); 5],
}

impl ProcessFacts {
    #[expect(
        clippy::cast_precision_loss,
        reason = "samples are floats, whatever they count"
    )]
    fn now() -> ProcResult<ProcessFacts> {
        let seen = Seen::myself()?;
        let stat = seen.stat()?;
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second() as f64;
        let most_files = match seen.limits()?.max_open_files.soft_limit {
            LimitValue::Unlimited => f64::INFINITY,
            LimitValue::Value(n) => n as f64,
        };
        Ok(ProcessFacts {
            cpu_seconds: seconds(stat.utime + stat.stime),
            gauges: [
                (
                    "process_start_time_seconds",
                    "When the process started, since 1970.",
                    // The system counts the start of a process from its own.
                    boot_time_secs()? as f64 + seconds(stat.starttime),
                ),
                (
                    "process_resident_memory_bytes",
                    "Memory that is in use.",
                    (stat.rss * page_size()) as f64,
                ),
                (
                    "process_virtual_memory_bytes",
                    "Address space that is in use.",
                    stat.vsize as f64,
                ),
                (
                    "process_open_fds",
                    "Open files and connections.",
                    seen.fd_count()? as f64,
                ),
                (
                    "process_max_fds",
                    "How many files and connections may be open.",
                    most_files,
                ),
            ],
        })
    }
}
