//! The runtime that the settings describe.

use crate::verify::CheckedRuns;
use loopwright::backend::{CompileOptions, Precision};
use loopwright::runtime::{Runtime, RuntimeOptions, Scheduler, Verify};
use loopwright_config::{Math, Scheduler as Configured, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where programs are written to that give something else than they should.
pub(crate) const FAILURES: &str = "loopwright-failures";

/// A runtime with every backend of this build.
pub(crate) fn runtime(settings: &Settings) -> Runtime {
    Runtime::new(RuntimeOptions {
        scheduler: scheduler(settings),
        devices: settings.devices(),
        streams: settings.streams(),
        // More than can be addressed is no limit.
        pool_cap: usize::try_from(settings.pool_cap()).unwrap_or(usize::MAX),
        queue: settings.queue(),
        compile: CompileOptions {
            strict: settings.strict(),
            math: precision(settings),
            cache: settings.cache_dir().map(Path::to_owned),
        },
        trace: settings.trace().is_some(),
        log_stores: settings.log_stores(),
        fallback: settings.fallback().map(str::to_owned),
        verify: settings.verify().then(|| {
            let verifier: Arc<dyn Verify> = Arc::new(CheckedRuns::new(PathBuf::from(FAILURES)));
            verifier
        }),
    })
}

/// How near results of functions are to the exact ones.
pub(crate) fn precision(settings: &Settings) -> Precision {
    match settings.math() {
        Math::Accurate => Precision::Accurate,
        Math::Fast => Precision::Fast,
    }
}

pub(crate) fn scheduler(settings: &Settings) -> Option<Scheduler> {
    Some(match settings.scheduler()? {
        Configured::Sync => Scheduler::Sync,
        Configured::Threads => Scheduler::Threads,
    })
}
