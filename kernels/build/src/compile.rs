//! Compiles all sources for all architectures, as many at once as there are cores. Each is a process of its own because
//! the compiler does not work in two threads at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::elf::Cubin;
use crate::manifest::Entry;
use crate::ptx::Ptx;
use crate::report;
use crate::sources::{Source, Sources};
use crate::target::Target;
use crate::toolchain;

/// Options of the compiler as the manifest names them; `-I` is relative to the repository there.
pub const OPTIONS: [&str; 4] = ["--std=c++17", "-Ikernels", "-default-device", "--ptxas-options=-v"];

/// One source, compiled for one architecture.
pub struct Compiled {
    /// The source.
    pub file: String,
    /// The architecture.
    pub target: Target,
    /// Cubin, or PTX without a zero at its end.
    pub image: Vec<u8>,
    /// Its entries by name.
    pub entries: Vec<Entry>,
}

/// Compiles every source for those of its architectures that are in `targets`. The result has the order of `targets`,
/// then of the sources.
///
/// # Errors
/// If the compiler is missing or a source does not compile.
pub fn compile(root: &Path, sources: &Sources, targets: &[Target]) -> Result<Vec<Compiled>> {
    let pairs = |target: Target| {
        sources.files.iter().filter(move |source| source.targets.contains(&target)).map(move |s| (target, s))
    };
    let jobs: Vec<(Target, &Source)> = targets.iter().copied().flat_map(pairs).collect();
    // The longest first, so that no core ends up alone with one of them.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse(jobs[job].1.text.len()));

    let library = toolchain::library(root)?;
    let scratch = std::env::temp_dir().join(format!("speakrs-app-kernels-{}", std::process::id()));
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Compiled>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(|| {
                while let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (target, source) = jobs[job];
                    let start = Instant::now();
                    let output = scratch.join(job.to_string());
                    let one = One { target, file: source.name.clone(), library: library.clone(), output };
                    let result = one
                        .start(root)
                        .with_context(|| format!("kernels/{} for {}", source.name, target.name));
                    eprintln!("{:5.1} s  {} {}", start.elapsed().as_secs_f64(), target.name, source.name);
                    *results[job].lock().expect("no thread panics with a result locked") = Some(result);
                }
            });
        }
    });
    let _ = fs::remove_dir_all(&scratch);
    let finished = |result: Mutex<Option<Result<Compiled>>>| {
        result.into_inner().expect("no thread panicked").expect("every job was taken")
    };
    results.into_iter().map(finished).collect()
}

/// One file to compile for one architecture.
#[derive(Args)]
pub struct One {
    #[arg(value_parser = Target::find)]
    target: Target,
    /// Name of the source.
    file: String,
    /// The compiler.
    library: PathBuf,
    /// Where the image goes.
    output: PathBuf,
}

impl One {
    /// Compiles here; the compiler's messages go to the standard output.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn run(&self, root: &Path) -> Result<()> {
        let folder = root.join("kernels");
        let text = fs::read_to_string(folder.join(&self.file))?.replace('\r', "");
        let mut options = vec![format!("--gpu-architecture={}", self.target.name)];
        options.extend(OPTIONS.iter().map(|option| match *option {
            "-Ikernels" => format!("-I{}", folder.display()),
            other => other.to_owned(),
        }));
        let compiled =
            toolchain::open(&self.library)?.compile(&self.file, &text, &options, self.target.ptx)?;
        print!("{}", compiled.log);
        fs::write(&self.output, compiled.image)?;
        Ok(())
    }

    /// Compiles in another process.
    fn start(&self, root: &Path) -> Result<Compiled> {
        let child = Command::new(std::env::current_exe()?)
            .current_dir(root)
            .args(["one", self.target.name, &self.file])
            .args([&self.library, &self.output])
            .output()?;
        if !child.status.success() {
            bail!("{}", String::from_utf8_lossy(&child.stderr).trim());
        }
        let (usage, others) = report::parse(&String::from_utf8_lossy(&child.stdout))?;
        others.iter().for_each(|line| eprintln!("{}: {line}", self.target.name));
        let mut image = fs::read(&self.output)?;
        if self.target.ptx {
            image.retain(|&byte| byte != 0);
        }
        let mut entries = entries(&image, self.target)?;
        ensure!(!entries.is_empty(), "holds no entry");
        if !self.target.ptx {
            let names = entries.iter().map(|entry| &entry.name);
            ensure!(names.eq(usage.keys()), "the report and the cubin name different entries");
            for entry in &mut entries {
                let usage = usage[&entry.name];
                entry.registers = Some(usage.registers);
                entry.spill_bytes = Some(usage.spill_bytes);
                entry.shared_bytes = Some(usage.shared_bytes);
            }
        }
        Ok(Compiled { file: self.file.clone(), target: self.target, image, entries })
    }
}

/// The entries of `image` by name, with what the image itself says of them.
///
/// # Errors
/// If it is not an image for `target`.
pub fn entries(image: &[u8], target: Target) -> Result<Vec<Entry>> {
    let named = |name| Entry {
        name,
        registers: None,
        spill_bytes: None,
        shared_bytes: None,
        threads: None,
        parameter_bytes: None,
    };
    if target.ptx {
        let ptx = Ptx::parse(std::str::from_utf8(image).context("PTX is text")?);
        let expected = target.name.replace("compute_", "sm_");
        ensure!(ptx.target == expected, "PTX for {:?}, expected {expected}", ptx.target);
        return Ok(ptx.entries.into_iter().map(named).collect());
    }
    let cubin = Cubin::parse(image)?;
    ensure!(
        (cubin.capability, cubin.specific) == (target.capability, target.specific()),
        "code for sm_{}{}, expected {}",
        cubin.capability,
        if cubin.specific { "a" } else { "" },
        target.name
    );
    let facts = |(name, launch): (String, crate::elf::Launch)| Entry {
        threads: Some(launch.threads),
        parameter_bytes: Some(launch.parameter_bytes),
        ..named(name)
    };
    Ok(cubin.entries.into_iter().map(facts).collect())
}
