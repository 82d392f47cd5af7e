//! What the assembler reports about every entry.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// Facts of one entry in the assembler's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of registers stored to and loaded from local memory, by instructions of one thread.
    pub spill_bytes: u32,
    /// Bytes of shared memory that the code itself declares.
    pub shared_bytes: u32,
}

/// The report in `log`, by entry, and the lines that are no part of it (warnings).
///
/// # Errors
/// If a function spills that belongs to no entry.
pub fn parse(log: &str) -> Result<(BTreeMap<String, Usage>, Vec<String>)> {
    let mut entries: BTreeMap<String, Usage> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut others = Vec::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let Some(text) = line.strip_prefix("ptxas") else {
            others.push(line.to_owned());
            continue;
        };
        if let Some((_, rest)) = text.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            entries.insert(name.clone(), Usage::default());
            current = Some(name);
            continue;
        }
        let spilled = number(text, " bytes spill stores") + number(text, " bytes spill loads");
        match current.as_ref().and_then(|name| entries.get_mut(name)) {
            Some(usage) => {
                usage.spill_bytes += spilled;
                if text.contains(": Used ") {
                    usage.registers = number(text, " registers");
                    usage.shared_bytes = number(text, " bytes smem");
                }
            }
            None if spilled > 0 => bail!("a function outside of all entries spills: {line}"),
            None => {}
        }
        if !text.trim_start().starts_with("info") && !text.trim_start().starts_with('.') {
            others.push(line.to_owned());
        }
    }
    Ok((entries, others))
}

/// The number before `unit`, or 0.
fn number(text: &str, unit: &str) -> u32 {
    let before = text.split_once(unit).map_or("", |(before, _)| before);
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
ptxas info    : 604 bytes gmem, 1208 bytes cmem[4]
ptxas info    : Compiling entry function 'one' for 'sm_75'
ptxas info    : Function properties for one
ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 83 registers, used 1 barriers, 2048 bytes smem, 432 bytes cmem[0]
ptxas info    : Compile time = 200.525 ms
ptxas info    : Compiling entry function 'two' for 'sm_75'
ptxas info    : Function properties for two
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 9 registers, 432 bytes cmem[0]
two.cu(3): warning #177-D: variable \"x\" was declared but never referenced
ptxas warning : Potential Performance Loss
";

    #[test]
    fn the_report_is_read() {
        let (entries, others) = parse(LOG).unwrap();
        assert_eq!(entries["one"], Usage { registers: 83, spill_bytes: 28, shared_bytes: 2048 });
        assert_eq!(entries["two"], Usage { registers: 9, spill_bytes: 0, shared_bytes: 0 });
        assert_eq!(others.len(), 2);
    }

    #[test]
    fn spills_outside_of_entries_are_refused() {
        assert!(parse("ptxas . 8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads").is_err());
    }
}
